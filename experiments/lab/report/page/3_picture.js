// Picture: one <figure class="chart">, drawn with Chart.js from the JSON that it holds
// (experiments/lab/report/chart_json.h says what is in it), with its switches.
'use strict';
class Picture {
  constructor(figure) {
    this.figure = figure;
    this.canvas = figure.querySelector('canvas');
    this.model = JSON.parse(figure.querySelector('script').textContent);
    this.view = this.model.begin ?? 0;
    this.hidden = new Set();
    this.logarithmic = false;
    this.controls();
    this.draw();
  }

  button(parent, text, action, pressed) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    if (pressed !== undefined) button.setAttribute('aria-pressed', pressed);
    button.addEventListener('click', action);
    parent.append(button);
    return button;
  }

  controls() {
    const box = this.figure.querySelector('.box');
    this.views = document.createElement('div');
    this.legend = document.createElement('div');
    this.tools = document.createElement('div');
    this.live = document.createElement('p');
    this.views.className = this.legend.className = 'switches';
    this.tools.className = 'tools switches';
    this.live.className = 'unseen';
    this.live.setAttribute('aria-live', 'polite');
    box.before(this.views);
    box.after(this.legend, this.tools, this.live);
    const views = this.model.views ?? [];
    for (const key of ['part', 'name']) this.switchOf(key, [...new Set(views.map(view => view[key] ?? ''))]);
    const values = this.model.kind === 'lines' ? views.flatMap(view => view.series.flatMap(one => one.points.map(point => point.y))) : [];
    if (values.length && !this.model.y.logarithmic && Math.min(...values) > 0 && Math.max(...values) > 10 * Math.min(...values)) {
      this.log = this.button(this.views, 'log scale', () => { this.logarithmic = !this.logarithmic; this.draw(); }, false);
      this.log.className = 'view';
    }
    const name = slug(this.model.title);
    this.button(this.tools, 'PNG', () => this.picture(canvas => canvas.toBlob(blob => save(`${name}.png`, blob), 'image/png')))
      .setAttribute('aria-label', `Save ${this.model.title} as PNG`);
    this.button(this.tools, 'CSV', () => save(`${name}.csv`, new Blob([this.csv()], {type: 'text/csv'})))
      .setAttribute('aria-label', `Save the figures of ${this.model.title} as CSV`);
    this.canvas.tabIndex = 0;
    this.canvas.addEventListener('keydown', event => this.key(event));
  }

  // Buttons for what the views differ in by `key`; where these would be many, a list.
  switchOf(key, names) {
    if (names.length < 2) return;
    if (names.length <= 6) {
      for (const name of names) {
        const button = this.button(this.views, name, () => this.show(key, name), false);
        button.className = 'view';
        button.dataset[key] = name;
      }
      return;
    }
    const list = document.createElement('select');
    list.setAttribute('aria-label', `Part of ${this.model.title}`);
    list.append(...names.map(name => new Option(name)));
    list.value = this.model.views[this.view][key];
    list.addEventListener('change', () => this.show(key, list.value));
    this.views.append(list);
  }

  show(key, name) {
    const now = this.model.views[this.view], of = (view, one) => view[one] ?? '';
    const found = this.model.views.findIndex(view => ['part', 'name'].every(one => of(view, one) === (one === key ? name : of(now, one))));
    if (found >= 0) this.view = found;
    this.draw();
  }

  // The series with what is common to all kinds: {name, colour, marker}.
  entries() {
    if (this.model.kind === 'lines') return this.model.views[this.view].series;
    if (this.model.kind === 'bars') return this.model.views[this.view].series.map(one => ({...one, marker: 1}));
    return [];
  }

  draw() {
    this.theme = themeNow();
    this.chart?.destroy();
    const rows = this.model.rows ?? this.model.views[this.view].rows;
    this.figure.classList.toggle('across', (rows?.length ?? 0) > 12);
    const narrow = this.figure.clientWidth < 480;
    const config = {lines: () => this.lines(narrow), intervals: () => this.intervals(narrow), bars: () => this.bars(narrow)}[this.model.kind]();
    config.options = {
      animation: false, responsive: true, maintainAspectRatio: false, devicePixelRatio: Math.max(2, window.devicePixelRatio),
      interaction: {mode: 'nearest', intersect: false, axis: 'xy'}, ...config.options
    };
    config.options.plugins = {
      legend: {display: false},
      tooltip: {backgroundColor: this.theme.text, titleColor: this.theme.page, bodyColor: this.theme.page, displayColors: false,
                callbacks: {title: () => '', label: item => this.tip(item)}}
    };
    config.plugins = [overlay(this)];
    this.chart = new Chart(this.canvas, config);
    const now = this.model.views?.[this.view];
    this.views.querySelectorAll('button').forEach(button => {
      const {part, name} = button.dataset;
      button.setAttribute('aria-pressed', button === this.log ? this.logarithmic : part !== undefined ? part === now.part : name === now.name);
    });
    this.drawLegend();
  }

  drawLegend() {
    const focused = [...this.legend.children].indexOf(document.activeElement);
    this.legend.replaceChildren();
    const entries = this.entries();
    if (entries.length < 2) return;
    for (const entry of entries) {
      const button = this.button(this.legend, '', () => this.toggle(entry.name), !this.hidden.has(entry.name));
      const glyph = document.createElement('span');
      glyph.textContent = glyphOf(entry) + ' ';
      glyph.style.color = colourOf(this.theme, entry.colour);
      glyph.setAttribute('aria-hidden', 'true');
      button.append(glyph, entry.name);
    }
    this.legend.children[focused]?.focus();
  }

  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    this.draw();
  }

  lines(narrow) {
    const theme = this.theme, view = this.model.views[this.view];
    const own = view.series.filter(one => !one.level), xs = own.flatMap(one => one.points.map(point => point.x));
    const ys = view.series.flatMap(one => one.points.flatMap(point => [point.y, point.low, point.high]))
      .filter(value => value !== undefined && (value > 0 || !(this.model.y.from_zero || this.model.y.logarithmic || this.logarithmic)));
    if (this.model.y.logarithmic) ys.push(...view.series.flatMap(one => one.points.map(point => point.y)).filter(y => y === 0));
    const x = axisOf(view.x, xs, theme, {ownTicks: true}), y = axisOf({...this.model.y, logarithmic: this.model.y.logarithmic || this.logarithmic}, ys, theme);
    const ends = xs.length ? [Math.min(...xs), Math.max(...xs)] : [0, 1];
    // Lines that run over each other are seen both: the later one is dashed. Long lines have a mark now and then.
    const drawn = new Set(), isOver = one => { const key = JSON.stringify(one.points.map(point => [point.x, point.y])), seen = drawn.has(key); drawn.add(key); return seen; };
    const datasets = view.series.map((one, place) => {
      const marker = markerOf(one.marker), colour = colourOf(theme, one.colour);
      const points = one.level ? ends.map(end => ({...one.points[0], x: end, label: ''})) : one.points;
      const apart = one.joined ? Math.ceil(points.length / 60) * (points.length > 60 ? 6 : 1) : 1;
      const radius = !one.marked || one.level ? 0 : ({dataIndex}) => (dataIndex + place) % apart === 0 ? 3.5 : 0;
      const dash = one.level ? [6, 3] : one.dashed ? [2, 3] : isOver(one) ? [9, 9] : [];
      return {
        label: one.name, hidden: this.hidden.has(one.name), showLine: one.joined || one.level, dashed: one.dashed,
        data: points.map(point => ({...point, x: x.place(point.x), y: y.place(point.y), given: point})),
        borderColor: colour, borderWidth: one.level || one.dashed ? 1.5 : 1.8, borderDash: dash,
        backgroundColor: marker.hollow ? theme.page : colour, pointStyle: marker.style, rotation: marker.rotation ?? 0,
        pointRadius: radius, pointBorderWidth: marker.hollow || ['+', '×'].includes(marker.glyph) ? 2 : 0, pointHoverRadius: 5, pointHitRadius: 8
      };
    });
    // Names at the ends of lines, where there is room for them; points without lines have only the legend.
    const shown = view.series.filter(one => !one.dashed && !this.hidden.has(one.name));
    const named = shown.filter(one => one.joined || one.level);
    const widest = this.widest(named.map(one => one.name)), width = this.figure.clientWidth;
    this.room = !narrow && view.series.length > 1 && named.length <= 6 && named.length === shown.length
      ? Math.min(widest + 26, 0.32 * width) : 0;
    this.resize(300);
    delete x.place, delete y.place, delete x.ownTicks;
    return {type: 'scatter', data: {datasets}, options: {layout: {padding: {right: this.room || 8, top: 6}}, scales: {x, y}}};
  }

  widest(texts) {
    const context = this.canvas.getContext('2d');
    context.font = `11px ${font}`;
    return Math.max(0, ...texts.map(text => context.measureText(text).width));
  }

  nameLines({ctx, chartArea: area, data}, visible) {
    const names = visible.flatMap(meta => {
      const last = meta.data[meta.data.length - 1], dataset = data.datasets[meta.index];
      return last && !dataset.dashed ? [{y: last.y, text: dataset.label, colour: dataset.borderColor}] : [];
    }).sort((a, b) => a.y - b.y);
    let least = area.top + 6;
    for (const name of names) least = (name.y = Math.max(name.y, least)) + 14;
    let most = area.bottom - 6;
    for (const name of names.reverse()) most = (name.y = Math.min(name.y, most)) - 14;
    for (const name of names) {
      ctx.fillStyle = name.colour;
      ctx.fillRect(area.right + 7, name.y - 1.5, 8, 3);
      ctx.fillStyle = this.theme.text;
      let text = ctx.measureText(name.text).width > this.room - 24 ? brief(name.text, names.map(one => one.text)) : name.text;
      while (text.length > 3 && ctx.measureText(text).width > this.room - 24) text = cut(text, text.length - 1);
      ctx.fillText(text, area.right + 19, name.y);
    }
  }

  // In two lines where there is little room: what distinguishes rows often stands at the end.
  rowNames(rows, narrow) {
    return index => {
      const whole = rows[index] ?? '', row = whole.length > (narrow ? 18 : 34) ? brief(whole, rows) : whole, space = row.indexOf(' ');
      if (!narrow || row.length <= 18 || space < 0) return cut(row, narrow ? 18 : 34);
      return [cut(row.slice(0, space), 18), cut(row.slice(space + 1), 18)];
    };
  }

  intervals(narrow) {
    const theme = this.theme, rows = this.model.rows;
    const values = [this.model.reference, ...rows.flatMap(row => [row.value, row.low, row.high])].filter(value => value !== undefined);
    const least = Math.min(...values), most = Math.max(...values);
    const x = axisOf({...this.model.axis, logarithmic: least > 0 && most > 5 * least}, values, theme);
    const name = this.rowNames(rows.map(row => row.name), narrow);
    const y = {type: 'linear', reverse: true, min: -0.6, max: rows.length - 0.4, grid: {display: false, borderColor: theme.muted},
               afterBuildTicks: built => { built.ticks = rows.map((_, i) => ({value: i})); },
               ticks: {color: theme.text, autoSkip: false, callback: name, font: {size: narrow ? 11 : 12}}};
    const of = key => rows.map(row => key(row));
    this.room = 0;
    this.resize((narrow ? 30 : 26) * rows.length + 74);
    delete x.place;
    return {
      type: 'scatter',
      data: {datasets: [{
        data: rows.map((row, i) => ({x: row.value, y: i, low: row.low, high: row.high, row})),
        borderColor: of(row => colourOf(theme, row.colour)), backgroundColor: of(row => markerOf(row.marker).hollow ? theme.page : colourOf(theme, row.colour)),
        pointStyle: of(row => markerOf(row.marker).style), rotation: of(row => markerOf(row.marker).rotation ?? 0), pointRadius: 4.5, pointHoverRadius: 6
      }]},
      options: {layout: {padding: {right: 12}}, scales: {x, y}}
    };
  }

  bars(narrow) {
    const theme = this.theme, {rows, series} = this.model.views[this.view], axis = this.model.axis;
    const values = series.flatMap(one => one.bars.flatMap(bar => [bar.from, bar.to]));
    const x = axisOf(axis, values, theme);
    const name = this.rowNames(rows, narrow);
    const labels = series.flatMap(one => one.bars.map(bar => bar.label ?? ''));
    this.room = 0;
    this.resize(Math.max(110, (narrow ? 30 : 26) * rows.length + 74));
    delete x.place;
    return {
      type: 'bar',
      data: {labels: rows, datasets: series.map(one => ({
        label: one.name, hidden: this.hidden.has(one.name), grouped: false, barPercentage: 0.9, categoryPercentage: 0.85, minBarLength: 1,
        data: one.bars.map(bar => ({x: [bar.from, bar.to], y: bar.row, label: bar.label, bar})),
        backgroundColor: colourOf(theme, one.colour), borderColor: theme.page, borderWidth: 0
      }))},
      options: {
        indexAxis: 'y', layout: {padding: {right: Math.min(this.widest(labels) + 12, 0.35 * this.figure.clientWidth)}},
        interaction: {mode: 'nearest', intersect: true, axis: 'xy'},
        scales: {x, y: {type: 'category', grid: {display: false, borderColor: theme.muted},
                        ticks: {color: theme.text, autoSkip: false, callback: name, font: {size: narrow ? 11 : 12}}}}
      }
    };
  }

  resize(height) { this.figure.querySelector('.box').style.height = `${height}px`; }

  tip({raw, dataset}) {
    if (raw.row) return `${raw.row.name}: ${exact(raw.row.value)}${interval(raw.row)}`;
    if (raw.bar) {
      const {row, from, to, label, tip} = raw.bar;
      const unit = this.model.axis.label, value = tip || label || exact(to - from);
      const first = `${row.startsWith(dataset.label) ? row : `${row}, ${dataset.label}`}: ${value}`;
      return from !== 0 ? [first, `${exact(from)} to ${exact(to)}: ${unit}`] : unit && value.endsWith(unit) ? [first] : [first, unit];
    }
    const point = raw.given, view = this.model.views[this.view];
    const isLevel = view.series.find(one => one.name === dataset.label)?.level;
    const lines = [`${dataset.label}${point.label ? ' ' + point.label : ''}`, `${this.model.y.label}: ${exact(point.y)}${interval(point)}`];
    return isLevel ? lines : [...lines, `${view.x.label}: ${exact(point.x)}`];
  }

  // Arrows go from point to point, and up and down from series to series.
  key(event) {
    const metas = this.chart.getSortedVisibleDatasetMetas();
    const by = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Escape: null}[event.key];
    if (by === undefined || !metas.length) return;
    event.preventDefault();
    let active = [];
    if (by) {
      const at = this.at ?? [0, -1];
      const series = (at[0] + by[0] + metas.length) % metas.length, count = metas[series].data.length;
      this.at = [series, Math.min(Math.max(at[1] + by[1], 0), count - 1)];
      active = [{datasetIndex: metas[series].index, index: this.at[1]}];
    }
    this.chart.setActiveElements(active);
    const element = active.length ? metas[this.at[0]].data[this.at[1]] : {x: 0, y: 0};
    this.chart.tooltip.setActiveElements(active, {x: element.x, y: element.y});
    this.chart.update('none');
    const items = active.map(one => ({raw: this.chart.data.datasets[one.datasetIndex].data[one.index], dataset: this.chart.data.datasets[one.datasetIndex]}));
    this.live.textContent = items.map(item => [].concat(this.tip(item)).join(', ')).join('');
  }

  // Gives `use` a canvas with the title, the chart, and below it its legend unless lines are named.
  picture(use) {
    const scale = this.chart.currentDevicePixelRatio, width = this.chart.width, theme = this.theme;
    const out = document.createElement('canvas'), ctx = out.getContext('2d');
    const size = (text, px, weight = '') => { ctx.font = `${weight} ${px}px ${font}`; return ctx.measureText(text).width; };
    const wrapped = (words, px, weight, gap) => words.reduce((lines, word) => {
      const last = lines[lines.length - 1], joined = last ? last + gap + word : word;
      if (last !== undefined && size(joined, px, weight) <= width - 20) lines[lines.length - 1] = joined; else lines.push(word);
      return lines;
    }, []);
    const part = this.model.views?.[this.view].part;
    const title = wrapped((this.model.title + (part ? `, ${part}` : '')).split(' '), 14, 'bold', ' ');
    const entries = this.room ? [] : this.entries().filter(entry => !this.hidden.has(entry.name));
    const note = this.model.note ? wrapped(this.model.note.split(' '), 11, '', ' ') : [];
    const lines = [[]];
    let used = 10;
    for (const entry of entries.length > 1 ? entries : []) {
      const need = size(entry.name, 12) + 34;
      if (used + need > width && lines[lines.length - 1].length) lines.push([]), used = 10;
      lines[lines.length - 1].push({entry, x: used});
      used += need;
    }
    const top = 20 * title.length + 12, base = top + this.chart.height, rows = lines.filter(line => line.length);
    out.width = width * scale;
    out.height = (base + 20 * rows.length + 15 * note.length + 12) * scale;
    ctx.scale(scale, scale);
    ctx.fillStyle = theme.page;
    ctx.fillRect(0, 0, out.width, out.height);
    ctx.textBaseline = 'middle';
    const write = (text, x, y, px, colour, weight = '') => { size(text, px, weight); ctx.fillStyle = colour; ctx.fillText(text, x, y); };
    title.forEach((line, i) => write(line, 10, 16 + 20 * i, 14, theme.text, 'bold'));
    ctx.drawImage(this.canvas, 0, top, width, this.chart.height);
    rows.forEach((line, i) => line.forEach(({entry, x}) => {
      const glyph = entry.level || entry.marked === false ? '━' : markerOf(entry.marker).glyph;
      write(glyph, x, base + 10 + 20 * i, 12, colourOf(theme, entry.colour));
      write(entry.name, x + 16, base + 10 + 20 * i, 12, theme.text);
    }));
    note.forEach((line, i) => write(line, 10, base + 20 * rows.length + 10 + 15 * i, 11, theme.muted));
    use(out);
  }

  csv() {
    const model = this.model;
    if (model.kind === 'intervals') {
      return csvOf([['name', model.axis.label, 'low', 'high'], ...model.rows.map(row => [row.name, row.value, row.low, row.high])]);
    }
    if (model.kind === 'bars') {
      return csvOf([['row', 'series', 'from', 'to', model.axis.label],
                    ...model.views[this.view].series.flatMap(one => one.bars.map(bar => [bar.row, one.name, bar.from, bar.to, bar.to - bar.from]))]);
    }
    const view = model.views[this.view];
    return csvOf([['series', view.x.label, model.y.label, 'low', 'high', 'label'],
                  ...view.series.flatMap(one => one.points.map(point => [one.name, one.level ? '' : point.x, point.y, point.low, point.high, point.label]))]);
  }
}
