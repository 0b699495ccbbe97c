"""The style sheet of the report: inline, for light and dark screens and for paper."""

CSS = """
:root { color-scheme: light dark; --ink: #24303c; --soft: #5f6b78; --line: #dde3e9; --card: #ffffff;
  --page: #f5f7f9; --good: #14743c; --good-back: #e2f4e8; --bad: #a8192f; --bad-back: #fde7ea;
  --quiet-back: #eceff3; --accent: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e8ee; --soft: #9aa7b4; --line: #323c47;
  --card: #1b222a; --page: #12171d; --good: #7bd9a0; --good-back: #163a26; --bad: #ff9aa8;
  --bad-back: #45161e; --quiet-back: #2a333d; --accent: #6cb8ea; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .35rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { margin: .4rem 0 .9rem; max-width: 72ch; }
.soft { color: var(--soft); }
td .soft { font-size: .82rem; margin-top: .15rem; white-space: nowrap; }
.banner { border-radius: 12px; padding: 1rem 1.25rem; margin: 1.4rem 0 0; font-size: 1.08rem;
  font-weight: 600; }
.banner.good { background: var(--good-back); color: var(--good); }
.banner.bad { background: var(--bad-back); color: var(--bad); }
h1:has(+ .finding) { font-size: 1rem; color: var(--soft); letter-spacing: 0; }
.finding { font-size: 2rem; line-height: 1.25; font-weight: 650; letter-spacing: -.015em; max-width: 32ch;
  margin: .4rem 0 1rem; }
th .soft { font-size: .82rem; font-weight: 400; min-width: 11rem; max-width: 34rem; }
.bars { padding: .9rem 1.1rem; }
.bar-row { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; align-items: baseline; }
.bar-row + .bar-row { margin-top: .8rem; }
.bar-row .bar { grid-column: 1 / -1; height: 1.1rem; border-radius: 4px; background: var(--soft); }
.bar-row:last-child .bar { background: var(--accent); }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--accent); font-weight: 600; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .4rem 1.1rem;
  margin: .8rem 0; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .5rem .6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child > td, tr:last-child > th { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 600; font-size: .82rem; vertical-align: bottom; }
tbody th { font-weight: 600; }
td.number, th.number { text-align: right; }
td.number { white-space: nowrap; }
.tag { display: inline-block; border-radius: 999px; padding: .05rem .65rem; font-size: .82rem;
  font-weight: 600; white-space: nowrap; }
.tag.good { background: var(--good-back); color: var(--good); }
.tag.bad { background: var(--bad-back); color: var(--bad); }
.tag.quiet { background: var(--quiet-back); color: var(--soft); }
code, pre { font: .88rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre { background: var(--quiet-back); border-radius: 10px; padding: .9rem 1.1rem; overflow-x: auto; }
td code { overflow-wrap: anywhere; }
figure { margin: 1rem 0 1.6rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .92rem; margin-top: .3rem; max-width: 80ch; }
footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; }
@media (max-width: 640px) { main { padding: 1.2rem .9rem 3rem; } h1 { font-size: 1.35rem; }
  .finding { font-size: 1.4rem; } .card { padding: .2rem .7rem; } table { font-size: .84rem; }
  th, td { padding: .4rem .45rem; } figure > .card { padding: .4rem; }
  figure > .card > svg { min-width: 560px; } }
@media print { body { background: #fff; font-size: 12px; } main { max-width: none; padding: 0; }
  .card, figure, .banner, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""
