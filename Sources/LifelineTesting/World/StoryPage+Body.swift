// The parts that are the same on every page.
extension StoryPage {
    /// The elements that the script fills.
    static let body = #"""
        <header>
        <h1 id="failure">This page needs its script.</h1>
        <p><span id="name"></span> · seed <b id="seed"></b><span id="no-faults"> · without faults</span>
        <span id="remark"></span></p>
        <p id="play-again">To play it again: <code id="command"></code></p>
        <details id="some-faults" open><summary id="fault-count"></summary><ul id="faults"></ul></details>
        </header>
        <main>
        <section id="time-line" aria-label="Time line">
        <div id="area"><canvas id="canvas" role="img"></canvas><div id="height"></div></div>
        <div id="legend">
        <span class="text">● note</span> <span class="host">■ host</span> <span class="connection">▮ connection</span>
        <span class="bytes">↘ bytes</span> <span class="fault">◆ fault, × lost</span>
        <span class="failure">✖ failure</span> <span class="no-link">no link</span>
        <span class="asleep">stands still</span> <span class="killed">killed</span>
        </div>
        </section>
        <section id="events" aria-label="Events">
        <div id="filters"><div id="lanes"></div><div id="words">
        <input id="search" type="search" placeholder="Search" aria-label="Search the events">
        <label><input id="bytes" type="checkbox" checked> bytes</label> <span id="count"></span></div></div>
        <div id="list" role="listbox" tabindex="0" aria-label="Events"><div id="rows"></div></div>
        </section>
        </main>
        <footer>
        <div id="controls">
        <button id="previous" title="Previous event (←)">◀</button>
        <button id="play" title="Play or pause (space)">Play</button>
        <button id="next" title="Next event (→)">▶</button>
        <input id="slider" type="range" min="0" step="1" aria-label="Event">
        <select id="speed" aria-label="Speed"><option value="2">2 events/s</option>
        <option value="10" selected>10 events/s</option><option value="100">100 events/s</option></select>
        <button id="closer" title="Closer (+)">+</button>
        <button id="farther" title="Farther (−)">−</button>
        <button id="whole" title="The whole story (0)">All</button>
        <label title="Time in which nothing happens takes less room"><input id="shorten" type="checkbox" checked>
        shorten waits</label>
        </div>
        <div id="present" aria-live="polite"><b id="place"></b> <span id="text"></span></div>
        </footer>
        """#

    static let style = #"""
        :root {
          color-scheme: light dark;
          --back: #ffffff; --raised: #f3f4f6; --line: #d4d7dd; --ink: #1c1f24; --quiet: #5d6470;
          --text: #3d5a80; --host: #8a5a00; --connection: #00705a; --bytes: #6b7280; --fault: #c02626;
          --failure: #c02626; --no-link: #f6c9c9; --asleep: #cfd8ee; --killed: #d9d9d9; --present: #1d5fd1;
          --chosen: #dbe7fb;
        }
        @media (prefers-color-scheme: dark) {
          :root {
            --back: #15181d; --raised: #1e2229; --line: #383e48; --ink: #e6e8ec; --quiet: #9aa3b0;
            --text: #9dbcf0; --host: #e6b455; --connection: #52c9ab; --bytes: #9aa3b0; --fault: #ff7b72;
            --failure: #ff7b72; --no-link: #572626; --asleep: #2a3654; --killed: #43464c; --present: #6ea8ff;
            --chosen: #243a5e;
          }
        }
        * { box-sizing: border-box; }
        html, body { height: 100%; margin: 0; }
        body {
          display: flex; flex-direction: column; min-height: 460px; background: var(--back); color: var(--ink);
          font: 13px/1.45 system-ui, sans-serif;
        }
        header { padding: 8px 12px; border-bottom: 1px solid var(--line); }
        header p { margin: 2px 0; color: var(--quiet); overflow-wrap: anywhere; }
        h1 {
          margin: 0 0 2px; max-height: 4.2em; overflow: auto; overflow-wrap: anywhere; font-size: 15px;
          line-height: 1.4; color: var(--failure);
        }
        #play-again { max-height: 3em; overflow: auto; }
        #remark { color: var(--fault); }
        code, #text { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
        code { user-select: all; color: var(--ink); }
        summary { color: var(--quiet); }
        ul { margin: 2px 0 0; padding-left: 20px; max-height: 4.4em; overflow: auto; overflow-wrap: anywhere; }
        main { flex: 1; display: flex; min-height: 0; }
        section { display: flex; flex-direction: column; min-width: 0; min-height: 0; }
        #time-line { flex: 1; }
        #area { flex: 1; position: relative; overflow: hidden auto; min-height: 0; }
        #canvas { position: sticky; top: 0; display: block; width: 100%; touch-action: pan-y; }
        #height { width: 1px; }
        #legend {
          padding: 3px 12px; border-top: 1px solid var(--line); color: var(--quiet); font-size: 12px;
        }
        #legend span { margin-right: 6px; white-space: nowrap; }
        .text { color: var(--text); } .host { color: var(--host); } .connection { color: var(--connection); }
        .bytes { color: var(--bytes); } .fault, .failure { color: var(--fault); }
        .no-link, .asleep, .killed { padding: 0 3px; color: var(--ink); }
        .no-link { background: var(--no-link); } .asleep { background: var(--asleep); }
        .killed { background: var(--killed); }
        #events { width: clamp(240px, 38%, 560px); border-left: 1px solid var(--line); }
        #filters { padding: 6px 8px; border-bottom: 1px solid var(--line); }
        #lanes { display: flex; flex-wrap: wrap; gap: 4px; max-height: 56px; margin-bottom: 5px; overflow: auto; }
        #lanes button { max-width: 12em; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
        #words { display: flex; align-items: center; gap: 8px; }
        #search { flex: 1; min-width: 4em; }
        #count { color: var(--quiet); white-space: nowrap; }
        label { display: inline-flex; align-items: center; gap: 4px; white-space: nowrap; }
        label input { margin: 0; }
        button, select, input[type=search] {
          padding: 2px 8px; border: 1px solid var(--line); border-radius: 4px; background: var(--raised);
          color: inherit; font: inherit;
        }
        button[aria-pressed=true] { background: var(--chosen); border-color: var(--present); }
        #list { flex: 1; position: relative; overflow: hidden auto; min-height: 60px; }
        .row {
          position: absolute; left: 0; right: 0; display: flex; gap: 8px; height: 22px; padding: 0 8px;
          line-height: 22px; white-space: nowrap; cursor: default;
        }
        .row[aria-selected=true] { background: var(--chosen); }
        .row .time { color: var(--quiet); font-variant-numeric: tabular-nums; }
        .row .lane { flex: none; max-width: 8em; overflow: hidden; text-overflow: ellipsis; font-weight: 600; }
        .row .words { overflow: hidden; text-overflow: ellipsis; }
        footer { padding: 6px 12px; border-top: 1px solid var(--line); background: var(--raised); }
        footer button, footer select { background: var(--back); }
        #controls { display: flex; flex-wrap: wrap; align-items: center; gap: 6px; }
        #slider { flex: 1; min-width: 100px; }
        #play { min-width: 5em; }
        #present { height: 4.4em; margin-top: 4px; overflow: auto; overflow-wrap: anywhere; }
        @media (max-width: 640px) {
          main { flex-direction: column; }
          #events { width: auto; flex: 1; border-left: none; border-top: 1px solid var(--line); }
          header details { display: none; }
        }
        """#
}
