// Colours, markers, numbers and axes of charts.
'use strict';
// Okabe and Ito's colours, and grey; lighter ones of the same hue where the page is dark.
const themes = {
  light: {text: '#1b1f24', muted: '#57606a', grid: '#e3e6ea', page: '#ffffff',
          colours: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000', '#b8a900', '#8a8a8a']},
  dark: {text: '#e6e9ed', muted: '#9aa4af', grid: '#2c333b', page: '#14171b',
         colours: ['#3d9be0', '#f07f2e', '#1ebe93', '#de94bc', '#f0b429', '#8fd0f5', '#f2f2f2', '#d9cc3c', '#9a9a9a']}
};
const markers = [
  {style: 'circle', glyph: '●'}, {style: 'rect', glyph: '■'}, {style: 'triangle', glyph: '▲'},
  {style: 'rectRot', glyph: '◆'}, {style: 'triangle', rotation: 180, glyph: '▼'}, {style: 'cross', glyph: '+'},
  {style: 'crossRot', glyph: '×'}, {style: 'circle', hollow: true, glyph: '○'}
];
const font = 'system-ui, sans-serif';
const darkness = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const themeNow = () => darkness.matches && !printing ? themes.dark : themes.light;
const colourOf = (theme, number) => theme.colours[number % theme.colours.length];
const markerOf = number => markers[number % markers.length];
const glyphOf = entry => entry.dashed ? '┅' : entry.level || entry.marked === false ? '━' : markerOf(entry.marker).glyph;

// 20000 as "20k", for the ticks of an axis.
function short(value) {
  for (const [size, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(value) >= size) return Number((value / size).toPrecision(4)) + letter;
  }
  return String(Number(value.toPrecision(4)));
}
const exact = value => value.toLocaleString('en', {maximumSignificantDigits: 6});
const interval = point => point.low === undefined ? '' : ` [${exact(point.low)}, ${exact(point.high)}]`;
// What distinguishes names often stands at their ends, so that a long one is cut in its middle.
const cut = (text, most) => text.length <= most ? text : text.slice(0, Math.ceil((most - 1) / 2)) + '…' + text.slice(text.length - Math.floor((most - 1) / 2));
// A name without the words that all names have, for places where it would be cut.
function brief(name, names) {
  const all = names.map(other => other.split(' ')), rest = name.split(' ').filter(word => all.length < 2 || !all.every(words => words.includes(word)));
  return rest.join(' ') || name;
}

// A linear or logarithmic axis that shows `values`. Zero has a place of its own on a logarithmic one.
function axisOf(axis, values, theme, more = {}) {
  const scale = {
    type: 'linear', grid: {color: theme.grid, borderColor: theme.muted}, beginAtZero: Boolean(axis.from_zero),
    title: {display: Boolean(axis.label), text: axis.label, color: theme.text, font: {size: 12}},
    ticks: {color: theme.muted, maxRotation: 0, callback: value => short(value)}, place: value => value, ...more
  };
  const finite = values.filter(value => Number.isFinite(value));
  if (!axis.logarithmic) {
    if (finite.length && finite.every(Number.isInteger)) scale.ticks.precision = 0;
    if (finite.length) [scale.suggestedMin, scale.suggestedMax] = [Math.min(...finite), Math.max(...finite)];
    // Values that are all the same would get an axis from far below to far above.
    if (finite.length && scale.suggestedMin === scale.suggestedMax && !axis.from_zero && scale.suggestedMin !== 0) {
      const margin = 0.02 * Math.abs(scale.suggestedMin);
      [scale.suggestedMin, scale.suggestedMax] = [scale.suggestedMin - margin, scale.suggestedMax + margin];
      delete scale.ticks.precision;
    }
    if (axis.most !== undefined) {
      scale.afterBuildTicks = built => {
        built.max = Math.min(built.max, Math.max(axis.most, ...finite));
        built.ticks = built.ticks.filter(tick => tick.value <= built.max);
      };
    }
    return scale;
  }
  const positive = [...new Set(finite.filter(value => value > 0))].sort((a, b) => a - b);
  if (!positive.length) return scale;
  const low = positive[0], high = positive[positive.length - 1];
  const decades = Math.log10(high / low);
  let ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
    for (const digit of decades < 2.5 ? [1, 2, 5] : [1]) ticks.push(Number((digit * 10 ** power).toPrecision(6)));
  }
  const below = Math.max(...ticks.filter(tick => tick <= low)), above = Math.min(...ticks.filter(tick => tick >= high));
  ticks = ticks.filter(tick => tick >= below && tick <= above);
  const own = more.ownTicks && positive.length <= 8 &&
    positive.every((value, i) => short(value).length <= 6 && (i === 0 || value >= 1.3 * positive[i - 1]));
  if (own) ticks = positive;
  const zero = finite.includes(0) ? below / 10 ** Math.max(0.3, decades / 6) : undefined;
  if (zero) ticks = [zero, ...ticks];
  scale.type = 'logarithmic';
  scale.min = zero ? zero / 1.1 : own ? low / 1.1 : below;
  scale.max = own ? high * 1.1 : above;
  scale.place = value => value === 0 && zero ? zero : value;
  scale.ticks.callback = value => value === zero ? '0' : short(value);
  scale.afterBuildTicks = built => { built.ticks = ticks.map(value => ({value})); };
  return scale;
}
