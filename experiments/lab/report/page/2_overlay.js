// What Chart.js does not draw.
'use strict';
// Texts that have been placed in a chart, so that none is written over another.
class Places {
  constructor(area) { this.area = area; this.boxes = []; }
  take(left, top, right, bottom) { this.boxes.push([left, top, right, bottom]); }
  find(x, y, width) {
    const tries = [[x + 7, y], [x - 7 - width, y], [x - width / 2, y - 12], [x - width / 2, y + 13],
                   [x + 7, y - 11], [x + 7, y + 12], [x - 7 - width, y - 11], [x - 7 - width, y + 12]];
    for (const [left, middle] of tries) {
      const [top, right, bottom] = [middle - 6, left + width + 4, middle + 6];
      if (left < this.area.left || right > this.area.right || top < this.area.top || bottom > this.area.bottom) continue;
      if (this.boxes.some(box => left < box[2] && box[0] < right && top < box[3] && box[1] < bottom)) continue;
      this.take(left, top, right, bottom);
      return [left, middle];
    }
    return null;
  }
}

// What Chart.js does not draw: error bars, a line at the reference, labels of points and bars, names at ends of lines.
const overlay = picture => ({
  id: 'overlay',
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area} = chart, theme = picture.theme;
    ctx.save();
    ctx.font = `11px ${font}`;
    ctx.textBaseline = 'middle';
    const within = (value, low, high) => Math.min(Math.max(value, low), high);
    if (picture.model.kind === 'intervals') {
      const x = chart.scales.x.getPixelForValue(picture.model.reference);
      ctx.strokeStyle = theme.muted;
      ctx.setLineDash([5, 3]);
      ctx.beginPath();
      ctx.moveTo(x, area.top);
      ctx.lineTo(x, area.bottom);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    const places = new Places(area), visible = chart.getSortedVisibleDatasetMetas();
    for (const meta of visible) {
      const dataset = chart.data.datasets[meta.index];
      ctx.lineWidth = 1.4;
      meta.data.forEach((element, i) => {
        const raw = dataset.data[i];
        if (picture.model.kind !== 'bars') places.take(element.x - 4, element.y - 4, element.x + 4, element.y + 4);
        if (raw.low === undefined) return;
        const across = picture.model.kind === 'intervals', scale = across ? chart.scales.x : chart.scales.y;
        const ends = [raw.low, raw.high].map(value => {
          const pixel = scale.type === 'logarithmic' && value <= 0 ? (across ? area.left : area.bottom) : scale.getPixelForValue(value);
          return across ? within(pixel, area.left, area.right) : within(pixel, area.top, area.bottom);
        });
        ctx.strokeStyle = [].concat(dataset.borderColor)[i] ?? dataset.borderColor;
        ctx.beginPath();
        const line = (x1, y1, x2, y2) => { ctx.moveTo(x1, y1); ctx.lineTo(x2, y2); };
        if (across) line(ends[0], element.y, ends[1], element.y); else line(element.x, ends[0], element.x, ends[1]);
        for (const end of ends) {
          if (across) line(end, element.y - 4, end, element.y + 4); else line(element.x - 4, end, element.x + 4, end);
        }
        ctx.stroke();
      });
    }
    ctx.fillStyle = theme.text;
    for (const meta of visible) {
      chart.data.datasets[meta.index].data.forEach((raw, i) => {
        const element = meta.data[i];
        if (!raw.label || !element) return;
        const width = ctx.measureText(raw.label).width;
        if (picture.model.kind === 'bars') {
          const end = Math.max(element.x, element.base);
          const fits = end + 5 + width <= chart.width, x = fits ? end + 5 : Math.min(element.x, element.base) - 5 - width;
          if (x > area.left) ctx.fillText(raw.label, x, element.y);
          return;
        }
        const place = places.find(element.x, element.y, width);
        if (place) ctx.fillText(raw.label, ...place);
      });
    }
    if (picture.room) picture.nameLines(chart, visible);
    ctx.restore();
  }
});
