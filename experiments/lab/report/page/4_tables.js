// Tables that are sorted by their headings, files that are saved, and the beginning.
'use strict';
const slug = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '').slice(0, 60) || 'chart';
// Texts that a spreadsheet would run as a formula begin with an apostrophe (OWASP, CSV Injection); numbers, and a dash
// for none, stay as they are.
const csvOf = rows => rows.map(row => row.map(cell => {
  const given = String(cell ?? ''), isSafe = typeof cell === 'number' || /^[-+]?[\d.,]*(e[-+]?\d+)?( ± [\d.,]+)?( %|x)?$/i.test(given);
  const text = !isSafe && /^[=+\-@\t\r\n]/.test(given) ? `'${given}` : given;
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(',')).join('\n') + '\n';

function save(name, blob) {
  const link = document.createElement('a');
  link.download = name;
  link.href = URL.createObjectURL(blob);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// "97,934 ± 5,319", "0.92x", "1.84 s" and "12 MB" by their number, in one unit; null for what is none.
function numberIn(text) {
  const found = /^[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?/i.exec(text.trim());
  if (!found) return null;
  const unit = /^\s*(ns|us|µs|ms|min|h|kB|MB|GB|KiB|MiB|GiB)\b/.exec(text.trim().slice(found[0].length))?.[1];
  const size = {ns: 1e-9, us: 1e-6, 'µs': 1e-6, ms: 1e-3, min: 60, h: 3600, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1048576, GiB: 1073741824}[unit] ?? 1;
  return Number(found[0].replaceAll(',', '')) * size;
}

function sortable(table) {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    if (!heading.textContent.trim()) button.setAttribute('aria-label', 'Sort by the first column');
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener('click', () => {
      const down = heading.getAttribute('aria-sort') === 'ascending', sign = down ? -1 : 1;
      headings.forEach(other => other.removeAttribute('aria-sort'));
      heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      const rows = [...body.rows].map(row => ({row, text: row.cells[column].textContent, value: numberIn(row.cells[column].textContent)}));
      rows.sort((a, b) => a.value !== null && b.value !== null ? sign * (a.value - b.value)
        : a.value === null && b.value === null ? sign * a.text.localeCompare(b.text, 'en', {numeric: true}) : a.value === null ? 1 : -1);
      body.append(...rows.map(one => one.row));
    });
  });
}

function tableTools(table) {
  const cells = row => [...row.cells].map(cell => cell.textContent);
  const tools = document.createElement('p'), button = document.createElement('button');
  tools.className = 'tools';
  button.type = 'button';
  button.textContent = 'CSV';
  button.setAttribute('aria-label', `Save ${table.getAttribute('aria-label')} as CSV`);
  button.addEventListener('click', () => save(`${slug(table.getAttribute('aria-label'))}.csv`, new Blob([csvOf([...table.rows].map(cells))], {type: 'text/csv'})));
  tools.append(button);
  table.closest('.wide').after(tools);
  if (table.tHead && table.tBodies[0]?.rows.length > 1) sortable(table);
}

document.querySelectorAll('.wide table').forEach(tableTools);
const pictures = [...document.querySelectorAll('figure.chart')].map(figure => new Picture(figure));
const redraw = () => pictures.forEach(picture => picture.draw());
darkness.addEventListener('change', redraw);
addEventListener('beforeprint', () => { printing = true; redraw(); });
addEventListener('afterprint', () => { printing = false; redraw(); });
let width = innerWidth;
addEventListener('resize', () => {
  if (!printing && (width < 600) !== (innerWidth < 600)) redraw();
  width = innerWidth;
});
