#include "tools/report/style.h"

namespace siltfs::report {

// The series have the colours s1 to s3, which people with the common kinds of colour blindness can
// tell apart on both backgrounds. The map of segments runs from the background (nothing in use) to
// full colour (all in use).
const std::string_view kStyle = R"css(
:root {
  color-scheme: light dark;
  --page: #f7f7f5; --card: #ffffff; --border: #e4e3dd; --ink: #16150f; --soft: #5a5952;
  --faint: #6b6a63; --grid: #e9e8e2; --base: #b9b8b0; --track: #e9e8e2;
  --s1: #2a78d6; --s2: #1a9a6c; --s3: #c47d00; --s1-soft: #e9f1fb; --s2-soft: #e5f5ee;
  --good: #0c8a3e; --bad: #c62f2f; --warn: #9a6200;
  --l0: #f1f0ec; --l1: #d8e7f9; --l2: #c5dbf5; --l3: #b0cff1; --l4: #98c0ec; --l5: #7fb0e6;
  --l6: #659fe0; --l7: #4b8ed9; --l8: #3480d3; --l9: #256fc0; --l10: #1b5aa2; --unknown: #d9d8d2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #111110; --card: #1b1b19; --border: #32312e; --ink: #f3f2ec; --soft: #b9b8b0;
    --faint: #9a9991; --grid: #2c2c29; --base: #55544e; --track: #34332f;
    --s1: #4c97ea; --s2: #2fb183; --s3: #d7962a; --s1-soft: #1b2a3c; --s2-soft: #18302a;
    --good: #3fb66b; --bad: #ef6a63; --warn: #e0a63c;
    --l0: #2a2a27; --l1: #1b3350; --l2: #1e3f66; --l3: #214b7c; --l4: #255892; --l5: #2b66a8;
    --l6: #3375bd; --l7: #3f85d0; --l8: #5096df; --l9: #6aa9ea; --l10: #8cc0f4; --unknown: #45443f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 56px; }
header { margin-bottom: 28px; }
.brand { color: var(--faint); font-size: 13px; letter-spacing: .04em; margin: 0 0 6px; }
h1 { font-size: 28px; line-height: 1.2; font-weight: 650; margin: 0; overflow-wrap: anywhere; letter-spacing: -.01em; }
.meta { color: var(--soft); margin: 8px 0 0; font-size: 14px; overflow-wrap: anywhere; }
.part { display: inline-block; max-width: 100%; white-space: pre-wrap; }
.health { display: inline-block; margin-right: 12px; font-weight: 600; }
.health::before { content: ""; display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px; background: currentColor; }
.health.ok { color: var(--good); } .health.bad { color: var(--bad); } .health.warn { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(5, 1fr); gap: 12px; margin: 0 0 12px; }
.tile, section { background: var(--card); border: 1px solid var(--border); border-radius: 12px; }
.tile { padding: 14px 16px; }
.tile .what { color: var(--soft); font-size: 13px; margin: 0; }
.tile .number { font-size: 24px; font-weight: 650; line-height: 1.3; margin: 2px 0 0; letter-spacing: -.01em; white-space: nowrap; }
.tile .note { color: var(--faint); font-size: 13px; margin: 0; }
section { padding: 22px 24px 20px; margin-top: 12px; }
h2 { font-size: 17px; font-weight: 650; margin: 0; }
.lead { color: var(--soft); margin: 4px 0 18px; max-width: 96ch; }
.body { display: grid; grid-template-columns: minmax(0, 1fr) 264px; gap: 36px; align-items: start; }
.facts { margin: 0; font-size: 14px; }
.facts div { display: flex; justify-content: space-between; gap: 14px; padding: 6px 0; border-bottom: 1px solid var(--grid); }
.facts div:last-child { border-bottom: 0; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.empty, .caution { color: var(--soft); background: var(--page); border-radius: 8px; padding: 12px 14px; margin: 0; font-size: 14px; }
.caution { margin: 0 0 16px; }
figure { margin: 0; } figure + figure { margin-top: 22px; }
figcaption { color: var(--soft); font-size: 13px; margin-bottom: 6px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: var(--soft); }
svg text.tick { fill: var(--faint); font-variant-numeric: tabular-nums; }
svg text.axis { fill: var(--faint); }
svg text.value, svg text.label, svg text.strong, svg text.heading { fill: var(--ink); }
svg text.strong { font-size: 14px; font-weight: 600; } svg text.heading { font-size: 13px; font-weight: 600; }
.grid { stroke: var(--grid); } .base { stroke: var(--base); } .border { stroke: var(--base); stroke-dasharray: 3 4; }
.bar:hover, .cell:hover, .box:hover { opacity: .75; }
.s1.bar, .s1.dot, .s1.fill { fill: var(--s1); } .s2.bar, .s2.dot, .s2.fill { fill: var(--s2); } .s3.bar, .s3.dot, .s3.fill { fill: var(--s3); }
.s0.bar { fill: var(--base); }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.s1.line { stroke: var(--s1); } .s2.line { stroke: var(--s2); } .s3.line { stroke: var(--s3); }
.dot { stroke: var(--card); stroke-width: 1.5; } .hit { fill: transparent; }
.box { stroke-width: 1; } .box.s1 { fill: var(--s1-soft); stroke: var(--s1); } .box.s2 { fill: var(--s2-soft); stroke: var(--s2); }
.track { fill: var(--card); }
.arrow { stroke: var(--faint); stroke-width: 1.5; } .head { fill: var(--faint); }
.good { fill: var(--good); stroke: var(--card); stroke-width: 1.5; } .bad { fill: var(--bad); }
.calm { fill: none; stroke: var(--base); } .damage { fill: var(--bad); fill-opacity: .15; stroke: var(--bad); stroke-width: 1.5; }
.l0 { fill: var(--l0); stroke: var(--border); } .l1 { fill: var(--l1); } .l2 { fill: var(--l2); } .l3 { fill: var(--l3); }
.l4 { fill: var(--l4); } .l5 { fill: var(--l5); } .l6 { fill: var(--l6); } .l7 { fill: var(--l7); }
.l8 { fill: var(--l8); } .l9 { fill: var(--l9); } .l10 { fill: var(--l10); }
.unknown { fill: var(--unknown); }
details { margin-top: 16px; font-size: 14px; }
summary { color: var(--soft); cursor: pointer; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin-top: 8px; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--grid); font-weight: 400; white-space: nowrap; }
th { color: var(--soft); } th:first-child, td:first-child { text-align: left; }
footer { color: var(--faint); font-size: 13px; margin-top: 24px; }
.narrow { display: none; }
@media screen and (max-width: 860px) {
  .body { grid-template-columns: minmax(0, 1fr); gap: 18px; }
  .tiles { grid-template-columns: repeat(3, 1fr); }
}
@media screen and (max-width: 600px) {
  main { padding: 24px 12px 40px; } header { padding: 0 6px; margin-bottom: 20px; }
  h1 { font-size: 23px; } section { padding: 18px 16px 16px; }
  .tiles { grid-template-columns: repeat(2, 1fr); gap: 10px; } .tile:first-child { grid-column: 1 / -1; }
  .wide { display: none; } .narrow { display: block; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --card: #fff; --border: #d5d4cd; --ink: #000; --soft: #444; --faint: #666; --grid: #e4e3dd;
    --base: #aaa9a2; --track: #e9e8e2; --s1: #2a78d6; --s2: #1a9a6c; --s3: #c47d00; --s1-soft: #f2f7fd;
    --s2-soft: #f0faf5; --good: #0c8a3e; --bad: #c62f2f; --warn: #9a6200;
    --l0: #f6f5f2; --l1: #d8e7f9; --l2: #c5dbf5; --l3: #b0cff1; --l4: #98c0ec; --l5: #7fb0e6;
    --l6: #659fe0; --l7: #4b8ed9; --l8: #3480d3; --l9: #256fc0; --l10: #1b5aa2; --unknown: #d9d8d2;
  }
  @page { margin: 14mm; }
  body { font-size: 12px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { padding: 0 1px; max-width: none; } svg { max-width: 560px; }
  section, .tile { break-inside: avoid; border-radius: 0; }
  .tiles { grid-template-columns: repeat(5, minmax(0, 1fr)); gap: 8px; }
  .tile { padding: 8px 10px; } .tile .number { font-size: 18px; } .tile .what, .tile .note { font-size: 11px; }
  section { padding: 14px 16px; } .lead { margin-bottom: 10px; }
  .body { grid-template-columns: minmax(0, 1fr); gap: 10px; }
  .facts { display: grid; grid-template-columns: 1fr 1fr; column-gap: 28px; font-size: 12px; } .facts div { padding: 3px 0; }
  details { display: none; }
}
)css";

}  // namespace siltfs::report
