/** The style sheet of the reference page; light or dark as the reader's system is. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --text: #1c2024; --soft: #57606a; --page: #ffffff; --panel: #f4f6f8; --line: #d5dae0; --link: #0a58ca;
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e3e7eb; --soft: #a3adb8; --page: #14171a; --panel: #1e2328; --line: #363d45; --link: #7db3ff; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; display: grid; grid-template-columns: minmax(16rem, 22rem) minmax(0, 1fr); color: var(--text);
  background: var(--page); font: 16px/1.55 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1rem; background: var(--panel);
  border-right: 1px solid var(--line); font-size: .875rem; }
nav h2 { font-size: .8rem; margin: 1rem 0 .25rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: .2rem 0; overflow-wrap: anywhere; }
main { padding: 1.5rem clamp(1rem, 4vw, 3rem) 4rem; max-width: 64rem; }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; z-index: 1; padding: .5rem 1rem; background: var(--page); }
h1 small { font-weight: 400; color: var(--soft); }
h3 { margin: 0 0 .5rem; font-size: 1.05rem; overflow-wrap: anywhere; }
h4 { margin: 1rem 0 .25rem; font-size: .95rem; }
section > section { padding: 1.25rem 0; border-top: 1px solid var(--line); }
section:target > h3 { border-left: .25rem solid var(--link); padding-left: .5rem; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
pre { margin: .5rem 0; padding: .75rem 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line);
  border-radius: .375rem; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .375rem .75rem .375rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
i { color: var(--soft); }
summary { cursor: pointer; margin: .5rem 0; }
.method { display: inline-block; min-width: 3.9em; font: 700 .75rem/1.6 ui-monospace, monospace; }
@media (max-width: 56rem) {
  body { display: block; }
  nav { position: static; height: auto; max-height: 50vh; border-right: 0; border-bottom: 1px solid var(--line); }
}
`;
