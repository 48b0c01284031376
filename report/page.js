/*
 * page.js - the interactive part of report.html: draws the roofline from the data in the page, and
 * makes tables sortable. It is embedded in the page; it loads nothing and never parses a name or
 * number from the data as HTML or code.
 *
 * The page supplies these elements, all optional:
 *   script #roofline-data     {"schema": "roofline.page/1", "points": [{column: value}, ...],
 *                             "peaks": {peaks.json}, "files": {"points": {"name", "hash"},
 *                             "peaks": ...}}, with each "<" written as \u003c
 *   div #roofline             container of the roofline
 *   table .data               sortable by its headings; data-value of a cell overrides its text, and
 *                             data-point="3" of a row selects point 3 of the data (from 0)
 *
 * The view depends only on `state`; each change of it redraws everything. Rates are in GFLOP/s and
 * GB/s, as in the files; an unknown value is NaN.
 */
'use strict';
(() => {
const SVG = 'http://www.w3.org/2000/svg';

/* ---- elements, numbers ---- */

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes))
		if (value !== undefined && value !== false)
			node.setAttribute(name, value);
	node.append(...children); /* strings become text nodes */
	return node;
}

const html = (tag, attributes, ...children) =>
	fill(document.createElement(tag), attributes, children);
const svg = (parent, tag, attributes, ...children) =>
	parent.appendChild(fill(document.createElementNS(SVG, tag), attributes, children));

/* Characters that are invalid in XML, or that reorder the text around them. */
const UNSAFE = new RegExp('[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069' +
	'\\ufffe\\uffff]|[\\ud800-\\udbff](?![\\udc00-\\udfff])' +
	'|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', 'g');
const plain = value => String(value ?? '').replace(UNSAFE, '\ufffd');
const real = value => typeof value === 'number' && isFinite(value) ? value : NaN;
const digits = (value, n = 3) => isNaN(value) ? 'n.a.' : String(Number(value.toPrecision(n)));

/* Three digits with an SI prefix: 29.2 TFLOP/s. */
function si(value, unit) {
	const rounded = Number(value.toPrecision(3)), size = Math.log10(Math.abs(rounded)) / 3;
	const i = rounded ? clamp(Math.floor(size + 1e-9), -5, 6) : 0;
	const prefix = 'fpn\u00b5m kMGTPE'.charAt(i + 5).trim();
	return isNaN(value) ? 'n.a.' : `${digits(rounded / 1000 ** i)} ${prefix}${unit}`;
}

const rate = gflops => si(gflops * 1e9, 'FLOP/s');
const percent = value => isNaN(value) ? 'n.a.' : digits(value, value < 100 ? 2 : 3) + ' %';
const shorten = (text, n) => text.length > n ? text.slice(0, n - 1) + '\u2026' : text;
const unique = list => [...new Set(list)];
const clamp = (value, lo, hi) => Math.max(Math.min(value, hi), lo);

/* ---- data: points and ceilings ---- */

const LEVELS = ['DRAM', 'L2', 'L1'];
const INTENSITY = { DRAM: 'ai', L2: 'ai_l2', L1: 'ai_l1' };
const STATUS = { measured: 'measured', spec: 'data sheet', derived: 'derived', user: 'as given' };

/* Other intensities of the same work, with the letters of their hollow marks. */
const TRAFFIC = [
	['ai_unfused', 'U', 'every operation reads and writes DRAM'],
	['ai_fused', 'F', 'normalisation and activation fused'],
	['ai_compulsory', 'C', 'every tensor moved once'],
	['ai_counters', 'M', 'FLOPs and bytes measured by counters'],
];
const TEXTS = ['env', 'model', 'precision', 'mode', 'layout', 'variant', 'engine', 'device_name',
	'part', 'part_kind', 'compute_key', 'peak_gflops_status', 'peak_gbps_status', 'bytes_source',
	'verdict'];
const NUMBERS = ['batch', 'step_s', 'ai', 'ai_lo', 'ai_hi', 'ai_l2', 'ai_l1', 'launches',
	'time_share', 'headroom_s', 'attained_gflops', 'attained_gflops_lo', 'attained_gflops_hi',
	'peak_gflops', 'peak_gbps', ...TRAFFIC.map(([name]) => name)];
const varies = {}; /* column: whether the points differ in it */
let points = [], envs = new Map(); /* envs: name, ceilings */
let source; /* the document */

function readPoint(raw, index) {
	const p = { index };
	TEXTS.forEach(name => p[name] = plain(raw[name]));
	NUMBERS.forEach(name => p[name] = real(raw[name]));
	p.kind = p.part ? p.part_kind || 'part' : 'step';
	/* by level: bound, the lower ceiling, the share of it, whether that is visibly more than 1 */
	p.verdicts = Object.fromEntries(LEVELS.map(l => [l, raw.verdicts?.[l] ?? {}]));
	p.drawn = LEVELS.filter(l => p[INTENSITY[l]] > 0 && p.attained_gflops > 0);
	return p;
}

/* The facts that distinguish a point from the others. */
function nameOf(p) {
	const facts = [p.part || p.model || 'point ' + (p.index + 1)];
	if (p.part && varies.model)
		facts.push(p.model);
	if (p.batch > 0 && (!p.part || varies.batch))
		facts.push('bs' + p.batch);
	return [...facts, ...['precision', 'mode', 'layout', 'variant'].filter(name => varies[name])
		.map(name => p[name])].filter(fact => fact).join(' ');
}

/* kind: compute (GFLOP/s; key as in peaks.json) or memory (GB/s; key is the level, DRAM for HBM) */
function makeCeiling(kind, key, name, peak) {
	const c = { kind, key, name, value: real(peak?.value), status: plain(peak?.status) };
	const measured = c.status === 'measured' ? peak : {};
	c.lo = real(measured.stats?.min);
	c.hi = real(measured.stats?.max);
	c.sheet = real(measured.spec);
	c.how = plain(measured.method?.kernel);
	return c;
}

const computeName = key => /^\w+(\.\w+)+$/.test(key) ?
	key.replace(/^\w+/, precision => precision.toUpperCase()).replace(/\./g, ' ') : key;

/* The ceilings of an environment: those of the peaks file in its long form and, if the file lacks
 * them, those with which the points were computed. */
function ceilingsFor(env, doc) {
	let list = Object.entries(doc?.compute ?? {}).map(([key, peak]) =>
		makeCeiling('compute', plain(key), computeName(plain(key)), peak));
	for (const m of Array.isArray(doc?.memory) ? doc.memory : []) {
		const level = plain(m.level);
		if (!(m.scope === 'core' && doc.device?.units > 1)) /* one core's share is not a ceiling */
			list.push(makeCeiling('memory', level === 'HBM' ? 'DRAM' : level, level, m.gbs));
	}
	list = list.filter(c => c.value > 0);
	for (const p of points.filter(o => o.env === env))
		for (const [kind, key, name, value, status] of [
			['compute', p.compute_key, computeName(p.compute_key) || 'compute', p.peak_gflops,
				p.peak_gflops_status],
			['memory', 'DRAM', 'memory', p.peak_gbps, p.peak_gbps_status]]) {
			const same = list.filter(c => c.kind === kind && Math.abs(c.value / value - 1) < 1e-6);
			p[kind] = same.find(c => c.key === key) || same[0];
			if (p[kind]?.own && p[kind].name !== name)
				p[kind].name = 'compute'; /* one value for several precisions */
			if (p[kind] || !(value > 0))
				continue;
			p[kind] = makeCeiling(kind, key, name, { status, value });
			p[kind].own = true;
			p[kind].extra = list.some(c => c.kind === kind && c.key === key);
			list.push(p[kind]);
		}
	return list.map((c, i) => Object.assign(c, { env, id: `${env}/${i}`,
		text: `${c.name} ${c.kind === 'memory' ? si(c.value * 1e9, 'B/s') : rate(c.value)}` }));
}

function read(doc) {
	source = doc;
	const documents = new Map(Object.entries(doc.peaks?.environments ?? {}));
	points = (Array.isArray(doc.points) ? doc.points : []).map((raw, i) => readPoint(raw ?? {}, i));
	const names = points.length ? unique(points.map(p => p.env)) : [...documents.keys()];
	for (const name of names.length ? names : [''])
		envs.set(name, ceilingsFor(name, documents.get(name)));
	for (const name of ['env', 'model', 'precision', 'batch', 'mode', 'layout', 'variant'])
		varies[name] = unique(points.map(p => p[name])).length > 1;
	for (const p of points) {
		p.name = nameOf(p);
		p.text = [p.name, p.kind, ...TEXTS.filter(name => name !== 'verdict').map(name => p[name])]
			.join(' ').toLowerCase();
	}
}

const ceiling = id => [...envs.values()].flat().find(c => c.id === id);

/* The rate that a memory level and the compute ceiling allow, in GFLOP/s. */
function attainable(p, level) {
	const memory = level === 'DRAM' ? p.memory :
		envs.get(p.env).find(c => c.kind === 'memory' && c.key === level);
	return memory && p.compute ?
		Math.min(p[INTENSITY[level]] * memory.value, p.compute.value) : NaN;
}

/* The level that decides the limit of a point: with all at once, the one that allows least. */
const decisive = p => state.level !== 'all' ? state.level :
	LEVELS.reduce((a, b) => attainable(p, b) < attainable(p, a) ? b : a);
const verdictOf = p => p.verdicts[decisive(p)];
const share = p => 100 * (verdictOf(p).share ?? NaN);

const within = p => verdictOf(p).over && verdictOf(p).bound !== 'above';

function limiter(p) {
	const { bound, roof } = verdictOf(p), level = decisive(p);
	const ceilings = { memory: level, compute: 'compute', ridge: `${level} and compute` };
	const words = source.bounds?.[bound] ?? {};
	return ceilings[bound] || (bound === 'neither' ?
		`${words.means} (nearest: ${ceilings[roof]})` : words.adjective) || 'n.a.';
}

/* ---- shapes and colours: from all points, so that no choice changes their meaning ---- */

/* Corners in units of the radius; the circle and the next six as in plot/scene.c. Further models
 * have circles with numbers, which are slow to draw. */
const SHAPES = [
	null,
	[-.89, -.89, .89, -.89, .89, .89, -.89, .89],
	[0, -1.25, 1.2, .83, -1.2, .83],
	[0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0],
	[0, 1.25, -1.2, -.83, 1.2, -.83],
	[0, -1.14, 1.084, -.352, .67, .922, -.67, .922, -1.084, -.352],
	[-.42, -1.15, .42, -1.15, .42, -.42, 1.15, -.42, 1.15, .42, .42, .42, .42, 1.15, -.42, 1.15,
		-.42, .42, -1.15, .42, -1.15, -.42, -.42, -.42],
	[0, -1.4, .4, -.5, 1.33, -.43, .62, .2, .82, 1.13, 0, .64, -.82, 1.13, -.62, .2, -1.33, -.43,
		-.4, -.5],
	[-1.2, -.95, 0, -.3, 1.2, -.95, 1.2, .95, 0, .3, -1.2, .95],
	[-.55, -1.1, .55, -1.1, 1.15, 0, .55, 1.1, -.55, 1.1, -1.15, 0],
	[-.55, 1.3, 0, -1.4, .55, 1.3],
	[-1.15, -1.15, 1.15, -1.15, 1.15, -.35, -.35, -.35, -.35, 1.15, -1.15, 1.15],
];
const COLORS = 7;
let models = [], colorBy = 'model', colors = [];

function chooseEncodings() {
	models = unique(points.map(p => p.model));
	colorBy = varies.precision ? 'precision' : varies.batch ? 'batch' : varies.variant &&
		unique(points.map(p => p.variant)).length <= COLORS ? 'variant' : 'model';
	colors = unique(points.map(p => p[colorBy]));
	if (colorBy === 'batch')
		colors.sort((a, b) => a - b);
	for (const p of points) {
		p.shape = models.indexOf(p.model);
		p.color = colors.findIndex(c => Object.is(c, p[colorBy]));
	}
}

/* The class and style of a colour. Batches are a ramp; other values after the seventh share a grey,
 * which the key calls "other". */
function paint(i) {
	if (colorBy === 'batch' && colors.length > 1)
		return { class: 'ramp', style: `--t:${(i / (colors.length - 1)).toFixed(3)}` };
	return { class: i < COLORS ? 'k' + i : 'other' };
}

function outline(shape, x, y, r) {
	const at = (u, v) => `${(x + u * r).toFixed(1)} ${(y + v * r).toFixed(1)}`;
	const corners = SHAPES[shape];
	let d = '';
	if (!corners)
		return `M${at(-1, 0)}A${r} ${r} 0 1 0 ${at(1, 0)}A${r} ${r} 0 1 0 ${at(-1, 0)}z`;
	for (let i = 0; i < corners.length; i += 2)
		d += (i ? 'L' : 'M') + at(corners[i], corners[i + 1]);
	return d + 'z';
}

/* ---- the view, stored in the address of the page ---- */

/* only: the isolated item, p<point> or r<ceiling>; top: number of points that the slider keeps */
const DEFAULTS = { env: '', kind: '', precision: '', level: 'DRAM', find: '', top: '', only: '',
	batches: '1', traffic: '', ceilings: '' };
const state = { ...DEFAULTS };

function readAddress() {
	const [name, query] = location.hash.slice(1).split('?');
	const known = { env: [...envs.keys()], kind: points.map(p => p.kind),
		precision: points.map(p => p.precision), level: [...LEVELS, 'all'], only:
		[...points.map(p => 'p' + p.index), ...[...envs.values()].flat().map(c => 'r' + c.id)] };
	Object.assign(state, DEFAULTS);
	for (const [key, value] of name === 'roofline' ? new URLSearchParams(query || '') : [])
		if (Object.keys(DEFAULTS).includes(key) && (known[key] || [value]).includes(value) &&
			(key !== 'top' || value >= 1))
			state[key] = value;
}

function address() {
	const changed = Object.entries(state).filter(([key, value]) => value !== DEFAULTS[key]);
	return '#roofline' + (changed.length ? '?' + new URLSearchParams(changed) : '');
}

function change(values) {
	Object.assign(state, values);
	try {
		history.replaceState(null, '', address());
	} catch (e) { /* too many changes per second; the link below the controls is correct */ }
	draw();
}

/* Measures by which the slider ranks points; the first one that any point has is used. */
const MEASURES = [
	['share of the time', 'time_share', p => p.part ? p.time_share : 1],
	['share of a step to save', 'headroom_s', p => p.headroom_s / p.step_s],
	['step time', 'step_s', p => p.step_s],
	['position in the file', 'index', p => -p.index],
];

function choose() {
	const words = state.find.toLowerCase().split(/\s+/);
	const found = points.filter(p => (!state.env || p.env === state.env) &&
		(!state.kind || p.kind === state.kind) && words.every(w => p.text.includes(w)) &&
		(!state.precision || p.precision === state.precision));
	const [measure, , value] = MEASURES.find(m => found.some(p => !isNaN(p[m[1]]))) || MEASURES[3];
	const weight = p => isNaN(value(p)) ? -Infinity : value(p);
	const shown = found.sort((a, b) => weight(b) - weight(a) || a.index - b.index)
		.slice(0, state.top || found.length);
	const levels = state.level === 'all' ? LEVELS : [state.level];
	if (state.only[0] === 'p' && !shown.some(isolated))
		state.only = ''; /* another choice has hidden the isolated point */
	return { measure, levels, shown, found: found.length,
		drawn: shown.filter(p => levels.some(l => p.drawn.includes(l))),
		envs: state.env ? [state.env] : [...envs.keys()] };
}

/* Whether a point is isolated, itself or by a roof that limits it. */
function isolated(p) {
	const c = ceiling(state.only.slice(1));
	if (!c)
		return !state.only || state.only === 'p' + p.index;
	return c.env === p.env && (c.kind === 'compute' ? p.compute === c && verdictOf(p).roof !== 'memory' :
		c.key === decisive(p) && verdictOf(p).roof !== 'compute');
}

/* The ceilings of a panel; main ones are those of the first selected level and of the points. */
function ceilingsOf(env, view) {
	const all = envs.get(env), used = new Set(points.filter(p => p.env === env && p.compute &&
		(!state.precision || p.precision === state.precision)).map(p => p.compute));
	const levels = view.levels.filter(l => all.some(c => c.kind === 'memory' && c.key === l));
	const main = c => c.kind === 'memory' ? c.key === (levels[0] || 'DRAM') : used.has(c);
	return all.filter(c => state.ceilings || main(c) || levels.includes(c.key) ||
		c.kind === 'compute' && !used.size).map(c => ({ c, main: main(c) }));
}

/* ---- geometry ---- */

const FONT = '"Liberation Sans", Arial, Helvetica, sans-serif';
const ruler = document.createElement('canvas').getContext('2d');

function textWidth(text, size) {
	ruler.font = `bold ${size}px ${FONT}`;
	return ruler.measureText(text).width;
}

/* The ranges of the axes, which all panels share. A point more than three decades from the ridge points
 * and roofs does not extend them; it is drawn at the edge. */
function fitAxes(view) {
	const xs = view.drawn.flatMap(p => view.levels.map(l => p[INTENSITY[l]])).filter(x => x > 0);
	const ys = view.drawn.map(p => p.attained_gflops), knees = [], tops = [];
	for (const env of view.envs) {
		const list = ceilingsOf(env, view).map(s => s.c);
		const compute = list.filter(c => c.kind === 'compute').map(c => c.value);
		tops.push(...compute);
		for (const m of list.filter(c => c.kind === 'memory'))
			knees.push(...compute.map(value => value / m.value));
	}
	/* [least, greatest] of the values, extended to the roofs */
	const range = (values, roofs, below, above, margin) => {
		const low = Math.min(...roofs), high = Math.max(...roofs);
		let lo = values.reduce((a, b) => Math.min(a, b), Infinity) / 2;
		let hi = values.reduce((a, b) => Math.max(a, b), 0) * margin;
		if (roofs.length) {
			lo = Math.max(Math.min(lo, low / below), low / 3000);
			hi = Math.min(Math.max(hi, high * above), high * 3000);
		}
		return hi > 0 ? [lo, Math.max(hi, lo * 10)] : [1, 1000];
	};
	return { x: range(xs, knees, 20, 8, 3), y: range(ys, tops, 20, 2, 1.6) };
}

/* Ticks at 1 to 9 times powers of ten; labels at 1, 2, 5, at 1, 3 or at 1, as room permits. */
function ticksOf([lo, hi], length, room) {
	const decade = length / Math.log10(hi / lo), every = Math.max(1, Math.ceil(room / decade));
	const steps = decade * 0.3 >= room ? [1, 2, 5] : decade * 0.47 >= room ? [1, 3] : [1];
	const ticks = [];
	for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e++)
		for (let digit = 1; digit < 10; digit++)
			ticks.push({ value: digit * 10 ** e, major: digit === 1,
				label: steps.includes(digit) && e % every === 0 });
	return ticks.filter(t => t.value >= lo * 0.9999 && t.value <= hi * 1.0001);
}

/* A part of the page with axes; `taken` are the areas where no name may be. */
function makePanel(env, cell, axes) {
	const box = { x: cell.x + 66, y: cell.y + 30, w: cell.w - 80, h: cell.h - 82 };
	const part = ([lo, hi], v) => Math.log10(v / lo) / Math.log10(hi / lo);
	const panel = { env, box, axes, taken: [], g: svg(plot, 'g', {}),
		x: v => Number((box.x + box.w * part(axes.x, v)).toFixed(1)),
		y: v => Number((box.y + box.h - box.h * part(axes.y, v)).toFixed(1)) };
	panel.take = (x0, y0, x1, y1) => panel.taken.push({ x: Math.min(x0, x1) - 2,
		y: Math.min(y0, y1) - 2, w: Math.abs(x1 - x0) + 4, h: Math.abs(y1 - y0) + 4 });
	return panel;
}

/* ---- drawing ---- */

let root, plot, tip, controls = {}, order = []; /* order: elements that the arrow keys visit */

const path = (parent, look, d) => d && svg(parent, 'path',
	typeof look === 'string' ? { class: look, d } : { ...look, d });
const write = (parent, look, x, y, text, anchor) =>
	svg(parent, 'text', { class: look, x, y, 'text-anchor': anchor }, text);

function drawAxes(panel, view) {
	const { g, box, axes } = panel, { x, y, w, h } = box;
	const grid = { true: '', false: '' };
	for (const t of ticksOf(axes.x, w, 34)) {
		grid[t.major] += `M${panel.x(t.value)} ${y}v${h}`;
		if (t.label)
			write(g, 'tick', panel.x(t.value), y + h + 17, digits(t.value), 'middle');
	}
	for (const t of ticksOf(axes.y, h, 22)) {
		grid[t.major] += `M${x} ${panel.y(t.value)}h${w}`;
		if (t.label)
			write(g, 'tick', x - 6, panel.y(t.value) + 4, si(t.value * 1e9, '').trim(), 'end');
	}
	path(g, 'grid', grid.false);
	path(g, 'grid major', grid.true);
	path(g, 'axis', `M${x} ${y}v${h}h${w}`);
	const levels = view.levels.length > 1 ? 'L1, L2 or DRAM' : view.levels[0];
	write(g, 'label', x + w / 2, y + h + 36, `FLOP per byte of ${levels} traffic`, 'middle');
	svg(g, 'text', { 'text-anchor': 'middle',
		transform: `translate(${x - 50} ${y + h / 2}) rotate(-90)` }, 'FLOP/s');
	write(g, 'title', x, y - 12, shorten(panel.env, Math.floor(w / 8)));
}

/* Draw a ceiling: the range of the runs that measured it, its data sheet value, and its line.
 * `at(value)` returns the ends of the line that the ceiling would have with this value. */
function drawRoof(parent, c, main, at) {
	const status = STATUS[c.status] || c.status, [xa, ya, xb, yb] = at(c.value);
	const over = p => p.compute === c || c.kind === 'memory' && c.env === p.env;
	const dim = state.only && state.only !== 'r' + c.id &&
		!points.some(p => isolated(p) && over(p));
	const g = svg(parent, 'g', { 'data-id': 'r' + c.id, 'aria-label': `roof ${c.text}, ${status}`,
		class: ['roof', main && 'main', dim && 'dim', c.status === 'measured' && 'measured']
			.filter(name => name).join(' ') });
	if (c.hi > c.lo) {
		const [x0, y0, x1, y1] = at(c.lo), [x2, y2, x3, y3] = at(c.hi);
		path(g, 'band', `M${x0} ${y0}L${x1} ${y1}L${x3} ${y3}L${x2} ${y2}z`);
	}
	if (main && Math.abs(c.sheet / c.value - 1) > 0.02) {
		const [x0, y0, x1, y1] = at(c.sheet);
		path(g, 'sheet', `M${x0} ${y0}L${x1} ${y1}`);
	}
	path(g, 'line', `M${xa} ${ya}L${xb} ${yb}`);
	path(g, 'hit', `M${xa} ${ya}L${xb} ${yb}`);
	order.push(g);
	return [g, status ? `${c.text}, ${status}` : c.text];
}

function drawRoofs(panel, view, g) {
	const { env, box, axes } = panel, [x0] = axes.x, right = box.x + box.w;
	const shown = ceilingsOf(env, view).sort((a, b) => b.c.value - a.c.value);
	const memory = shown.filter(s => s.c.kind === 'memory');
	const compute = shown.filter(s => s.c.kind === 'compute');
	const top = compute.length ? compute[0].c.value : axes.y[1];
	const slope = Math.atan2(panel.y(1) - panel.y(10), panel.x(10) - panel.x(1));
	const cos = Math.cos(slope), sin = Math.sin(slope);
	const fit = (room, ...texts) => texts.find(t => textWidth(t, 12) < room) || '';
	let above = -Infinity; /* the lowest label so far */

	for (const { c, main } of memory) {
		const at = v => [panel.x(Math.max(x0, axes.y[0] / v)), panel.y(Math.max(x0 * v, axes.y[0])),
			panel.x(top / v), panel.y(top)];
		const [xa, ya, xb, yb] = at(c.value), [roof, full] = drawRoof(g, c, main, at);
		const length = Math.hypot(xb - xa, yb - ya), text = fit(length - 24, full, c.text);
		svg(roof, 'text', { class: 'roof-label', transform: `translate(${xa + 14 * cos - 6 * sin} ${
			ya - 14 * sin - 6 * cos}) rotate(${-slope * 180 / Math.PI})` }, text);
		for (let u = 0; u < length; u += 8) { /* small boxes for the area of line and text */
			const x = xa + u * cos, y = ya - u * sin, h = u < textWidth(text, 12) + 14 ? 14 : 0;
			panel.take(x, y, x - h * sin, y - h * cos);
		}
	}
	for (const { c, main } of compute) {
		const left = memory.length ? panel.x(Math.max(x0, c.value / memory[0].c.value)) : box.x;
		const [roof, full] = drawRoof(g, c, main, v => [left, panel.y(v), right, panel.y(v)]);
		const y = panel.y(c.value), text = fit(right - left - 8, full, c.text) ||
			fit(box.w - 8, c.text, c.name);
		const base = y - above < 15 ? y + 13 : y - 5; /* below the line if there is no room above */
		panel.take(left, y, right, y);
		if (base - above < 13)
			continue;
		above = base;
		write(roof, 'roof-label', right - 4, base, text, 'end');
		panel.take(right - 4 - textWidth(text, 12), base - 11, right, base + 2);
	}
	/* the ridge point of each ceiling in use on the first memory roof */
	const first = memory.find(s => s.main);
	for (const { c } of first ? compute.filter(s => s.main).reverse() : []) {
		const x = panel.x(c.value / first.c.value), y = panel.y(c.value);
		const text = 'ridge ' + digits(c.value / first.c.value), low = box.y + box.h;
		path(g, 'drop', `M${x} ${y}V${low}`);
		path(g, 'knee', outline(3, x, y, 4));
		const label = { x: x + 3, y: low - 16, w: textWidth(text, 11), h: 13 };
		if (panel.taken.some(t => overlaps(t, label)))
			continue;
		write(g, 'tick', x + 4, low - 6, text);
		panel.taken.push(label);
	}
}

const overlaps = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

/* The area of a mark is proportional to the share of the time, if known. */
const radiusOf = part => clamp(18 * Math.sqrt(part), 2.5, 16);

/* The mark of a point; outside the axes it is at the edge, with an arrow. */
function place(panel, p, level, n) {
	const { box } = panel, x = panel.x(p[INTENSITY[level]]), y = panel.y(p.attained_gflops);
	const m = { p, level, on: isolated(p), x: clamp(x, box.x, box.x + box.w),
		y: clamp(y, box.y, box.y + box.h),
		r: isNaN(p.time_share) ? n > 300 ? 3.5 : n > 60 ? 5 : 7 : radiusOf(p.time_share) };
	if (m.x !== x || m.y !== y) {
		const dx = Math.sign(x - m.x), dy = Math.sign(y - m.y);
		m.edge = `M${m.x} ${m.y}l${-7 * dx - 4 * dy} ${-7 * dy - 4 * dx}l${8 * dy} ${8 * dx}z`;
		m.x -= 14 * dx;
		m.y -= 14 * dy;
	}
	return m;
}

function drawMarks(panel, marks, view, g) {
	const pairs = state.traffic ? state.traffic === '1' : view.drawn.length <= 12;
	const first = view.levels[0];
	let errors = '', hairs = '';
	if (state.batches)
		drawBatches(g, marks.filter(m => m.on && m.level === first));
	for (const m of marks.filter(mark => mark.on && mark.level === first)) {
		const p = m.p, line = (x0, y0, x1, y1) => {
			panel.take(x0, y0, x1, y1);
			return `M${x0} ${y0}L${x1} ${y1}`;
		};
		const [bottom, top] = [p.attained_gflops_lo, p.attained_gflops_hi].map(panel.y);
		const [left, right] = [p.ai_lo, p.ai_hi].map(panel.x);
		if (bottom - top > 2 * m.r)
			errors += line(m.x, bottom, m.x, top);
		if (right - left > 2 * m.r && first === 'DRAM')
			errors += line(left, m.y, right, m.y);
		const levels = view.levels.length > 1 ? p.drawn.map(l => panel.x(p[INTENSITY[l]])) : [];
		if (levels.length > 1)
			hairs += line(Math.min(...levels), m.y, Math.max(...levels), m.y);
		if (first === 'DRAM' && (pairs || state.only === 'p' + p.index))
			drawPair(panel, g, m);
	}
	path(g, 'hair', hairs);
	path(g, 'error', errors);
	for (const m of [...marks].sort((a, b) => b.r - a.r)) {
		const dim = m.on ? '' : ' dim', color = paint(m.p.color);
		const above = verdictOf(m.p).bound === 'above' ? ' above' : '';
		order.push(path(g, { ...color, 'data-id': 'p' + m.p.index,
			class: `mark ${color.class} ${m.level}${above}${dim}` },
			outline(m.p.shape, m.x, m.y, m.r)));
		if (m.p.shape >= SHAPES.length)
			write(g, 'letter' + dim, m.x, m.y + 3, m.p.shape + 1);
		path(g, 'edge', m.edge);
		panel.take(m.x - m.r, m.y - m.r, m.x + m.r, m.y + m.r);
	}
}

/* Join the batches of one configuration in ascending order. */
function drawBatches(g, marks) {
	const groups = new Map();
	for (const m of marks.filter(mark => mark.p.batch > 0)) {
		const p = m.p;
		const key = [p.model, p.precision, p.mode, p.layout, p.part, p.variant].join('\n');
		groups.set(key, groups.get(key) || []);
		groups.get(key).push(m);
	}
	for (const list of groups.values())
		if (list.length > 1 && unique(list.map(m => m.p.batch)).length === list.length)
			path(g, 'batches', 'M' + list.sort((a, b) => a.p.batch - b.p.batch)
				.map(m => `${m.x} ${m.y}`).join('L'));
}

/* Join a point with the other intensities of its work. */
function drawPair(panel, g, m) {
	const others = TRAFFIC.filter(([name]) => Math.abs(Math.log(m.p[name] / m.p.ai)) > 0.02)
		.map(([name, letter]) => ({ letter, x: panel.x(m.p[name]) }))
		.filter(o => o.x > panel.box.x && o.x < panel.box.x + panel.box.w);
	const xs = [m.x, ...others.map(o => o.x)], color = paint(m.p.color);
	const left = Math.min(...xs), right = Math.max(...xs);
	path(g, { ...color, class: 'pair ' + color.class }, `M${left} ${m.y}H${right}`);
	panel.take(left, m.y, right, m.y);
	for (const o of others) {
		path(g, { ...color, class: 'hollow ' + color.class }, outline(m.p.shape, o.x, m.y, 7));
		write(g, 'letter', o.x, m.y + 3, o.letter);
		panel.take(o.x - 7, m.y - 7, o.x + 7, m.y + 7);
	}
}

/* Write names next to the marks, at the first free position: the first point of each model by the
 * measure of the slider, then the second of every model, and so on. */
function drawNames(panel, marks, view, g) {
	const { box, taken } = panel, seen = {}, nth = new Map();
	const named = marks.filter(m => m.on && m.level === view.levels[0]);
	for (const m of named)
		nth.set(m, seen[m.p.shape] = (seen[m.p.shape] || 0) + 1);
	for (const m of named.sort((a, b) => nth.get(a) - nth.get(b)).slice(0, 14)) {
		const name = shorten(m.p.name, 48), w = textWidth(name, 11.5), gap = m.r + 4;
		const free = [[gap, -7], [-gap - w, -7], [-w / 2, -gap - 14], [4, -gap - 14],
			[-w - 4, -gap - 14], [-w / 2, gap], [4, gap], [-w - 4, gap]]
			.map(([dx, dy]) => ({ x: m.x + dx, y: m.y + dy, w, h: 14 }))
			.find(b => b.x > box.x + 2 && b.x + w < box.x + box.w - 2 && b.y > box.y &&
				b.y + 14 < box.y + box.h && !taken.some(t => overlaps(b, t)));
		if (!free)
			continue;
		write(g, 'name', free.x.toFixed(1), (free.y + 11).toFixed(1), name);
		taken.push(free);
	}
}

/* The entries of the key: the meaning of shapes, colours, sizes and lines. */
function keyOf(view) {
	const used = name => unique(view.drawn.map(p => p[name])).sort((a, b) => a - b);
	const mark = (shape, r, look = {}) => (g, x, y) => path(g,
		{ ...look, class: `mark ${look.class || 'plain'}` }, outline(shape, x, y, r));
	const letter = (text, symbol) => (g, x, y) => {
		symbol(g, x, y);
		write(g, 'letter', x, y + 3, text);
	};
	const box = look => (g, x, y) => path(g, look, `M${x - 9} ${y - 5}h18v10h-18z`);
	const line = look => (g, x, y) => path(g, look, `M${x - 9} ${y}h18`);
	const items = used('shape').map(shape => {
		const symbol = mark(shape, 6, colorBy === 'model' ? paint(shape) : {});
		return [models[shape] || 'unknown model',
			shape < SHAPES.length ? symbol : letter(shape + 1, symbol)];
	});
	for (const i of colorBy === 'model' ? [] : used('color')) {
		const look = paint(i), rest = look.class === 'other';
		const symbol = box({ ...look, class: 'mark ' + look.class });
		/* a step of which there is only one variant */
		const modes = () => unique(points.filter(p => !p.variant).map(p => p.mode)).join(', ');
		const name = !colors[i] ? (colorBy === 'variant' && modes()) || 'unknown ' + colorBy :
			colorBy === 'batch' ? 'batch ' + colors[i] : colors[i];
		if (!rest || i === COLORS)
			items.push([rest ? 'other ' + colorBy : name, symbol]);
	}
	if (view.drawn.some(p => !isNaN(p.time_share)))
		for (const part of [0.01, 0.1, 0.5])
			items.push([`${100 * part} % of the time`, mark(0, radiusOf(part))]);
	for (const l of view.levels.length > 1 ? LEVELS : [])
		items.push([`intensity from ${l} traffic`, mark(0, 6, { class: 'k0 ' + l })]);
	const letters = [...plot.querySelectorAll('.letter')].map(e => e.textContent);
	for (const [, name, text] of TRAFFIC.filter(t => letters.includes(t[1])))
		items.push([text, letter(name, (g, x, y) => path(g, 'hollow', outline(0, x, y, 7)))]);
	for (const [look, text, symbol] of [['.error', 'uncertainty', line('error')],
		['.batches', 'batches in order', line('batches')], ['.sheet', 'data sheet', line('sheet')],
		['.band', 'range of the runs that measured the roof', box('band')],
		['.above', 'above its roof', mark(0, 6, { class: 'plain above' })],
		['.edge', 'beyond the edge', (g, x, y) => path(g, 'edge', `M${x - 4} ${y - 4}l8 4l-8 4z`)]])
		if (plot.querySelector(look))
			items.push([text, symbol]);
	return items;
}

/* Draw the key in rows below the panels. Returns its lower edge. */
function drawKey(view, width, top) {
	const items = keyOf(view), g = svg(plot, 'g', { class: 'key' });
	let x = 8, y = top + 12;
	for (const [name, symbol] of items) {
		const text = shorten(name, Math.max(20, Math.floor(width / 7) - 8));
		const w = 44 + textWidth(text, 12);
		if (x > 8 && x + w > width)
			[x, y] = [8, y + 26];
		symbol(g, x + 16, y);
		write(g, 'label', x + 36, y + 4, text);
		x += w + 8;
	}
	return y + 20;
}

function drawPanel(env, view, cell, axes) {
	const panel = makePanel(env, cell, axes), { box } = panel;
	const clip = 'rl-clip-' + view.envs.indexOf(env);
	const own = view.drawn.filter(p => p.env === env), n = view.drawn.length;
	const marks = own.flatMap(p => view.levels.filter(l => p.drawn.includes(l))
		.map(l => place(panel, p, l, n)));
	drawAxes(panel, view);
	svg(svg(panel.g, 'clipPath', { id: clip }), 'rect',
		{ x: box.x, y: box.y - 1, width: box.w, height: box.h + 2 });
	const g = svg(panel.g, 'g', { 'clip-path': `url(#${clip})` });
	drawRoofs(panel, view, g);
	drawMarks(panel, marks, view, g);
	drawNames(panel, marks, view, g);
	if (!marks.length)
		write(g, 'label', box.x + box.w / 2, box.y + box.h - 30, 'no point to draw', 'middle');
}

function draw() {
	const view = choose(), width = Math.max(300, root.clientWidth), n = view.envs.length;
	const columns = clamp(Math.floor(width / 440), 1, Math.min(n, 3));
	const cell = { w: width / columns, h: clamp(width / columns * 0.68, 320, 600) };
	const axes = fitAxes(view), active = document.activeElement;
	const focus = root.contains(active) && active.dataset.id;
	tip.hidden = true;
	order = [];
	plot.replaceChildren();
	const paper = svg(plot, 'rect', { class: 'paper', width });
	view.envs.forEach((env, i) => drawPanel(env, view,
		{ ...cell, x: i % columns * cell.w, y: Math.floor(i / columns) * cell.h }, axes));
	const height = drawKey(view, width, Math.ceil(n / columns) * cell.h);
	paper.setAttribute('height', height);
	fill(plot, { viewBox: `0 0 ${width} ${height}`, width, height }, []);
	showControls(view);
	drawTable(view);
	/* restore the focus, since its element was redrawn */
	const held = focus && [...order, ...table.querySelectorAll('td button')]
		.find(e => e.dataset.id === focus);
	if (order.length)
		order[Math.max(0, order.indexOf(held))].setAttribute('tabindex', 0);
	if (held)
		held.focus({ preventScroll: true });
	for (const row of document.querySelectorAll('table.data tr[data-point]'))
		row.classList.toggle('chosen', state.only === 'p' + row.dataset.point);
}

/* ---- the table of the points ---- */

const TABLE_ROWS = 100;
const same = text => text;
const COLUMNS = [ /* title, value, format */
	['Point', p => p.name, same],
	['Environment', p => p.env, same],
	['FLOP/byte', p => p[INTENSITY[decisive(p)]], digits],
	['Rate', p => p.attained_gflops, rate],
	['% of roof', p => share(p), percent],
	['Limited by', p => limiter(p), same],
	['Launches', p => p.launches, value => digits(value, 9)],
	['Time', p => p.step_s, value => si(value, 's')],
	['Share', p => 100 * p.time_share, percent],
];
let table, columns = [];

function drawTable(view) {
	const n = view.shown.length, sorted = table.querySelector('th[aria-sort$="ing"]');
	table.tBodies[0].replaceChildren(...view.shown.slice(0, TABLE_ROWS).map(p => {
		const cells = columns.map(([, value, show]) => html('td', { class: show !== same && 'n',
			'data-value': Number.isNaN(value(p)) ? '' : value(p) }, show(value(p))));
		cells[0].replaceChildren(
			html('button', { type: 'button', 'data-id': 'row' + p.index }, p.name));
		return html('tr', { 'data-point': p.index }, ...cells);
	}));
	table.hidden = n === 0;
	table.caption.textContent = n > TABLE_ROWS ?
		`The first ${TABLE_ROWS} of ${n} points by ${view.measure}; search to see others` :
		`The points by ${view.measure}`;
	if (sorted)
		sortRows(table, sorted.cellIndex, sorted.getAttribute('aria-sort'));
}

/* ---- tooltip ---- */

/* The facts of a point: [term, text] pairs. */
function pointFacts(p) {
	const lo = p.attained_gflops_lo, hi = p.attained_gflops_hi, part = 100 * p.time_share;
	const levels = p.drawn.map(l => `${digits(p[INTENSITY[l]])} (${l})`).join(', ') || 'n.a.';
	const others = TRAFFIC.filter(([name]) => p[name] > 0)
		.map(([name, letter]) => `${letter} ${digits(p[name])}`).join(', ');
	return [['Environment', varies.env ? p.env : ''],
		['Intensity', `${levels} FLOP/byte${p.bytes_source && ', ' + shorten(p.bytes_source, 60)}`],
		['Counted as', others],
		['Rate', rate(p.attained_gflops) + (hi > lo ? ` (${rate(lo)} to ${rate(hi)})` : '')],
		['Roof', `${percent(share(p))} of ${rate(attainable(p, decisive(p)))}` + (within(p) ?
			', within the uncertainty' : '')],
		['Limited by', limiter(p)],
		['Launches', isNaN(p.launches) ? '' : digits(p.launches, 9)],
		['Time', si(p.step_s, 's') + (isNaN(part) ? '' : `, ${percent(part)} of the time`)],
		['Verdict', shorten(p.verdict, 400)]];
}

function roofFacts(c) {
	const per = v => c.kind === 'memory' ? si(v * 1e9, 'B/s') : rate(v);
	const dram = envs.get(c.env).find(o => o.kind === 'memory' && o.key === 'DRAM');
	return [['Roof', `${per(c.value)}, ${STATUS[c.status] || 'source unknown'}`],
		['Runs', c.hi > c.lo ? `${per(c.lo)} to ${per(c.hi)}` : ''],
		['Data sheet', c.sheet > 0 ?
			`${per(c.sheet)}, ${percent(100 * c.value / c.sheet)} reached` : ''],
		['Loop', c.how],
		['Ridge point', c.kind === 'compute' && dram ? `${digits(c.value / dram.value)} FLOP/byte` : '']];
}

function showTip(node, x, y) {
	const id = node.dataset.id, c = id[0] === 'r' && ceiling(id.slice(1));
	const p = points.find(o => id === 'p' + o.index);
	const facts = (c ? roofFacts(c) : pointFacts(p)).filter(([, text]) => text);
	const outer = root.getBoundingClientRect(), mark = node.getBoundingClientRect();
	tip.replaceChildren(html('b', {}, c ? c.name : p.name), html('dl', {},
		...facts.flatMap(([term, text]) => [html('dt', {}, term), html('dd', {}, text)])));
	tip.hidden = false;
	x = x || (mark.left + mark.right) / 2;
	y = y || (mark.top + mark.bottom) / 2;
	const low = y + 18 + tip.offsetHeight > innerHeight && y > tip.offsetHeight + 14;
	tip.style.left = clamp(x - outer.left + 14, 0, outer.width - tip.offsetWidth) + 'px';
	tip.style.top = y - outer.top + (low ? -tip.offsetHeight - 14 : 16) + 'px';
}

/* ---- controls ---- */

/* Add an input to the bar; `get` converts its value to the new state. */
function control(bar, name, label, input, event = 'change', get = () => ({ [name]: input.value })) {
	input.id = 'rl-' + name;
	input.addEventListener(event, () => change(get()));
	bar.append(html('span', { class: 'control' }, html('label', { for: input.id }, label), input));
	controls[name] = input;
}

/* Add a choice of [value, text] pairs, unless there is nothing to choose. */
function choice(bar, name, label, options) {
	const input = html('select', {}, ...options.map(([value, text]) =>
		html('option', { value }, shorten(text, 40))));
	if (options.length > 2)
		control(bar, name, label, input, 'change', () => ({ [name]: input.value, only: '' }));
}

function makeControls() {
	const bar = html('div', { class: 'controls', role: 'group', 'aria-label': 'View' });
	const all = (text, list) => [['', text], ...list.map(v => [v, v || 'unknown'])];
	const levels = LEVELS.filter(l => l === 'DRAM' || points.some(p => p.drawn.includes(l)));
	const top = html('input', { type: 'range', min: 1 });
	choice(bar, 'env', 'Environment', all('all, side by side', [...envs.keys()]));
	choice(bar, 'kind', 'Points', all('all', unique(points.map(p => p.kind))));
	choice(bar, 'precision', 'Precision', all('all', unique(points.map(p => p.precision))));
	choice(bar, 'level', 'Intensity from', levels.length < 2 ? [] :
		[...levels.map(l => [l, l + ' traffic']), ['all', 'all at once']]);
	control(bar, 'find', 'Search',
		html('input', { type: 'search', placeholder: 'name, model, ...' }), 'input');
	control(bar, 'top', '', top, 'input', () => ({ top: top.value === top.max ? '' : top.value }));
	for (const [name, label, off] of [['batches', 'join batches', ''],
		['traffic', 'other traffic', '0'], ['ceilings', 'all ceilings', '']]) {
		const input = html('input', { type: 'checkbox' });
		control(bar, name, label, input, 'change', () => ({ [name]: input.checked ? '1' : off }));
	}
	for (const [text, action] of [['Save SVG', () => save(standalone(source.peaks && figureData()), 'roofline.svg')],
		['Save PNG', savePng], ['Reset', () => change(DEFAULTS)]]) {
		const button = bar.appendChild(html('button', { type: 'button' }, text));
		button.addEventListener('click', action);
	}
	controls.link = bar.appendChild(html('a', {}, 'Link to this view'));
	return bar;
}

/* Update the controls and the status line from the state. */
function showControls(view) {
	for (const [name, input] of Object.entries(controls))
		if (input.type === 'checkbox')
			input.checked = name === 'traffic' ? plot.querySelector('.pair') : state[name];
		else if (name in state && name !== 'top' && input.value !== state[name])
			input.value = state[name];
	const { top } = controls, c = ceiling(state.only.slice(1)), notes = [];
	top.max = Math.max(1, view.found);
	top.value = state.top || top.max;
	top.disabled = view.found < 2;
	top.previousSibling.textContent =
		`Largest ${view.measure}: ${view.shown.length} of ${view.found}`;
	controls.link.href = address();

	const gaps = view.shown.length - view.drawn.length;
	const unknown = view.envs.filter(env =>
		view.levels.some(l => !envs.get(env).some(o => o.key === l)));
	notes.push(`${view.drawn.length} of ${points.length} points drawn.`);
	if (gaps)
		notes.push(`${gaps} without a known intensity or rate: see the table.`);
	if (unknown.length)
		notes.push(`Unknown ${view.levels.join(', ')} bandwidth in ${unknown.length} of ` +
			`${view.envs.length} environments.`);
	if ([...envs.values()].flat().some(o => o.extra))
		notes.push('The points were computed with ceilings other than those of the peaks file.');
	if (state.only)
		notes.push(`Isolated: ${c ? 'points limited by ' + c.text :
			(points.find(isolated) || {}).name}. Escape shows all.`);
	controls.status.textContent = notes.join(' ');
}

const isolate = id => change({ only: state.only === id ? '' : id });

function onKey(event) {
	const i = order.indexOf(event.target);
	const next = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0,
		End: order.length - 1 }[event.key];
	if (i < 0 || next === undefined && event.key !== 'Enter' && event.key !== ' ')
		return;
	event.preventDefault();
	if (next === undefined) {
		isolate(order[i].dataset.id);
		return;
	}
	const node = order[clamp(next, 0, order.length - 1)];
	order[i].removeAttribute('tabindex');
	node.setAttribute('tabindex', 0);
	node.focus();
}

/* Describe an element to a screen reader when it receives the focus, and show its facts. */
function onFocus(event) {
	const node = event.target.closest('[data-id]');
	if (!node)
		return;
	const p = points.find(o => node.dataset.id === 'p' + o.index);
	node.setAttribute('role', 'button');
	node.setAttribute('aria-pressed', state.only === node.dataset.id);
	if (p)
		node.setAttribute('aria-label', [p.name, ...pointFacts(p).flat()].join(' '));
	showTip(node);
}

function listen() {
	const target = event => event.target.closest('[data-id]');
	plot.addEventListener('mousemove', event => target(event) ?
		showTip(target(event), event.clientX, event.clientY) : tip.hidden = true);
	plot.addEventListener('mouseleave', () => tip.hidden = true);
	plot.addEventListener('focusin', onFocus);
	plot.addEventListener('focusout', () => tip.hidden = true);
	plot.addEventListener('keydown', onKey);
	plot.addEventListener('click', event =>
		target(event) ? isolate(target(event).dataset.id) : change({ only: '' }));
	document.addEventListener('click', event => {
		const row = event.target.closest('table.data tr[data-point]');
		if (row)
			isolate('p' + row.dataset.point);
	});
	document.addEventListener('keydown', event => {
		if (event.key !== 'Escape')
			return;
		if (state.only)
			change({ only: '' });
		tip.hidden = true;
	});
	addEventListener('hashchange', () => {
		readAddress();
		draw();
	});
	let width = root.clientWidth;
	new ResizeObserver(() => {
		if (root.clientWidth && root.clientWidth !== width) {
			width = root.clientWidth;
			draw();
		}
	}).observe(root);
}

/* ---- export ---- */

/* Properties set by page.css, with their defaults, which are omitted. */
const STYLE = { fill: '', 'fill-opacity': '1', stroke: 'none', 'stroke-width': '1px', opacity: '1',
	'stroke-dasharray': 'none', 'stroke-linejoin': 'miter', 'paint-order': 'normal' };
const TEXT_STYLE = { ...STYLE, 'font-family': '', 'font-size': '', 'font-weight': '400',
	'text-anchor': 'start' };

/* The points of the view and the ceilings as text, from which `roofline plot --from` draws a figure;
 * the content of plot/surface_data.h. */
function figureData() {
	const { points: all, peaks, files } = source;
	const rows = choose().shown.map(p => all[p.index]), names = unique(rows.flatMap(Object.keys));
	const cell = value => /[",\n\r]/.test(value ?? '') ? `"${String(value).replace(/"/g, '""')}"` : value;
	return JSON.stringify({ schema: 'roofline.figure/1', options: {},
		points_file: files?.points, peaks_file: files?.peaks, peaks, points:
		[names, ...rows.map(row => names.map(name => cell(row[name])))].join('\n') + '\n' },
	(_, value) => typeof value === 'string' ? plain(value) : value);
}

/* The plot as a separate file, with the styles of the page as attributes. */
function standalone(data) {
	const copy = plot.cloneNode(true), from = plot.querySelectorAll('*');
	copy.querySelectorAll('*').forEach((node, i) => {
		const style = getComputedStyle(from[i]);
		for (const { name } of [...node.attributes])
			if (/^(class|style|tabindex|role|data-.*|aria-.*)$/.test(name))
				node.removeAttribute(name);
		for (const [name, usual] of Object.entries(node.tagName === 'text' ? TEXT_STYLE : STYLE))
			if (style.getPropertyValue(name) !== usual)
				node.setAttribute(name, style.getPropertyValue(name));
		if (from[i].matches('.hit'))
			node.remove();
	});
	copy.removeAttribute('class');
	if (data) {
		const metadata = document.createElementNS(SVG, 'metadata');
		copy.prepend(fill(metadata, { id: 'roofline-data' }, [data]));
	}
	return new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' });
}

function save(blob, name) {
	const url = URL.createObjectURL(blob);
	html('a', { href: url, download: name }).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function savePng() {
	const image = new Image(), { width, height } = plot.viewBox.baseVal;
	const canvas = html('canvas', { width: 2 * width, height: 2 * height });
	image.addEventListener('load', () => {
		canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
		canvas.toBlob(blob => save(blob, 'roofline.png'), 'image/png');
		URL.revokeObjectURL(image.src);
	});
	image.src = URL.createObjectURL(standalone());
}

/* ---- sortable tables ---- */

/* Sort by a column: as numbers if all known cells are, otherwise as text. Unknown cells are last
 * in both directions. */
function sortRows(of, column, direction) {
	const sign = direction === 'descending' ? -1 : 1;
	const compare = new Intl.Collator('en', { numeric: true }).compare;
	const rows = [...of.tBodies[0].rows].map(row => {
		const cell = row.cells[column], text = cell?.dataset.value ?? cell?.textContent.trim() ?? '';
		return { row, text, value: Number(text), missing: text === '' || text === '-' };
	});
	const numeric = rows.every(r => r.missing || !isNaN(r.value));
	rows.sort((a, b) => a.missing - b.missing || (a.missing ? 0 :
		sign * (numeric ? a.value - b.value : compare(a.text, b.text))));
	of.tBodies[0].append(...rows.map(r => r.row));
}

function makeSortable(of) {
	const headings = of.tBodies.length ? [...of.querySelectorAll('thead tr:last-child > *')] : [];
	for (const th of headings) {
		const button = html('button', { type: 'button' }, ...th.childNodes);
		th.append(button);
		th.setAttribute('aria-sort', 'none');
		button.addEventListener('click', () => {
			const next = th.getAttribute('aria-sort') === 'ascending' ? 'descending' : 'ascending';
			for (const other of headings)
				other.setAttribute('aria-sort', other === th ? next : 'none');
			sortRows(of, th.cellIndex, next);
		});
	}
}

/* ---- start ---- */

function openPictures(open) {
	document.querySelectorAll('details.picture').forEach(e => e.open = open);
}

function start() {
	const data = document.getElementById('roofline-data');
	document.querySelectorAll('table.data').forEach(makeSortable);
	root = document.getElementById('roofline');
	if (!root || !data)
		return;
	try {
		read(JSON.parse(data.textContent));
	} catch (e) {
		root.append(html('p', { role: 'alert' },
			'The data of this page cannot be read: ' + e.message));
		return;
	}
	chooseEncodings();
	columns = COLUMNS.filter(([, value]) => points.some(p => value(p) || value(p) === 0));
	table = html('table', { class: 'data' }, html('caption', {}), html('thead', {},
		html('tr', {}, ...columns.map(([title, , show]) =>
			html('th', { scope: 'col', class: show !== same && 'n' }, title)))),
		html('tbody', {}));
	controls.status = html('p', { class: 'status', role: 'status' });
	tip = html('div', { class: 'tip', hidden: '' });
	root.append(makeControls(), controls.status);
	plot = svg(root, 'svg', { class: 'plot', role: 'group', 'font-family': FONT,
		'aria-label': 'Roofline; arrow keys move between roofs and points, Enter isolates one' });
	root.append(tip, html('div', { class: 'scroll' }, table));
	makeSortable(table);
	readAddress();
	draw();
	listen();
	/* the figures for print show the same as the roofline above them */
	for (const [event, open] of [['beforeprint', true], ['afterprint', false]])
		addEventListener(event, () => openPictures(open));
	openPictures(false);
	if (location.hash.startsWith('#roofline?'))
		root.scrollIntoView();
}

if (document.readyState === 'loading')
	document.addEventListener('DOMContentLoaded', start);
else
	start();
})();
