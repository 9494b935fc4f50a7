extension StoryPage {
    /// The part of the script that fills the page, and steps from event to event.
    static let controls = #"""
        const [list, rows, slider] = [element("list"), element("rows"), element("slider")];
        const rowHeight = 22;
        // The numbers of the events that the filter leaves.
        let shown = [];
        // When the last step was played; null: it does not play.
        let playedAt = null;

        function add(parent, name, text, className = "") {
          const child = document.createElement(name);
          child.textContent = text;
          child.className = className;
          parent.append(child);
          return child;
        }

        function fillHeader() {
          element("failure").textContent = story.failure;
          element("name").textContent = story.name;
          element("seed").textContent = story.seed;
          const omitted = story.picture.omittedEventCount;
          const remarks = [story.remark, omitted ? `${omitted} earlier events are left out here.` : ""];
          element("remark").textContent = remarks.filter(Boolean).join(" ");
          element("command").textContent = story.command;
          const count = story.faults.length;
          element("no-faults").hidden = count > 0;
          element("some-faults").hidden = count === 0;
          element("fault-count").textContent = `With ${count === 1 ? "one fault" : `${count} faults`}:`;
          for (const fault of story.faults) {
            add(element("faults"), "li", `${fault.number}, after ${seconds(fault.time, 3)}: ${fault.text}`);
          }
          document.title = `${story.name}, seed ${story.seed}`;
          canvas.setAttribute("aria-label", `${events.length} events on ${lanes.length} lanes. The list has them all.`);
          lanes.forEach((name, lane) => {
            const button = add(element("lanes"), "button", name);
            button.setAttribute("aria-pressed", "false");
            button.onclick = () => {
              const chosen = new Set(chosenLanes ?? []);
              if (!chosen.delete(lane)) chosen.add(lane);
              chosenLanes = chosen.size ? chosen : null;
              button.setAttribute("aria-pressed", String(chosen.has(lane)));
              filter();
            };
          });
        }

        // MARK: The list

        function filter() {
          const words = element("search").value.toLowerCase(), showsBytes = element("bytes").checked;
          shown = [];
          events.forEach((event, index) => {
            if (chosenLanes && !chosenLanes.has(event.lane)) return;
            if (!showsBytes && event.kind === "bytes") return;
            if (words && !event.text.toLowerCase().includes(words)) return;
            shown.push(index);
          });
          slider.max = String(Math.max(0, shown.length - 1));
          slider.disabled = shown.length === 0;
          rows.style.height = shown.length * rowHeight + "px";
          element("count").textContent = `${shown.length} of ${events.length}`;
          show(shown.length ? Math.min(firstPlace(shown, present), shown.length - 1) : -1);
        }

        // The rows that can be seen, and no others.
        function fillList() {
          const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 2);
          const stop = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / rowHeight) + 2);
          rows.replaceChildren();
          for (let position = first; position < stop; position += 1) {
            const event = events[shown[position]];
            const row = add(rows, "div", "", "row");
            row.style.top = position * rowHeight + "px";
            row.setAttribute("role", "option");
            row.setAttribute("aria-selected", String(shown[position] === present));
            row.setAttribute("aria-posinset", String(position + 1));
            row.setAttribute("aria-setsize", String(shown.length));
            add(row, "span", seconds(event.time), "time");
            add(row, "span", lanes[event.lane], "lane " + event.kind);
            add(row, "span", event.text, "words");
            row.onclick = () => show(position);
          }
        }

        // MARK: Steps

        function position() { return firstPlace(shown, present); }

        // Shows the event at a position of the list; -1: none.
        function show(position) {
          present = position < 0 ? -1 : shown[position];
          const event = events[present];
          element("place").textContent = event
            ? `${position + 1} of ${shown.length}, ${seconds(event.time)}, ${lanes[event.lane]}:` : "No event is left.";
          element("text").textContent = event ? event.text : "";
          slider.value = String(Math.max(position, 0));
          if (event) {
            const top = position * rowHeight;
            if (top < list.scrollTop || top + rowHeight > list.scrollTop + list.clientHeight) {
              list.scrollTop = top - list.clientHeight / 2;
            }
            moveIntoView(event);
          }
          fillList();
          askForDrawing();
        }

        function step(count) {
          if (shown.length) show(Math.min(Math.max(position() + count, 0), shown.length - 1));
        }

        function moveIntoView(event) {
          const place = event.place, size = view.to - view.from;
          const isAside = place < view.from + size * 0.05 || place > view.to - size * 0.05;
          if (size < 1 && isAside) look(place - size / 2, size);
          const { top, height: laneHeight } = laneShapes[event.lane];
          const room = area.clientHeight - rulerHeight;
          if (top < area.scrollTop || top + laneHeight > area.scrollTop + room) {
            area.scrollTop = top - (room - laneHeight) / 2;
          }
        }

        function setPlaying(plays) {
          playedAt = plays ? performance.now() : null;
          element("play").textContent = plays ? "Pause" : "Play";
          if (plays && position() >= shown.length - 1) step(-shown.length);
          if (plays) requestAnimationFrame(playOn);
        }

        function playOn(now) {
          if (playedAt === null) return;
          const interval = 1000 / Number(element("speed").value);
          const count = Math.floor((now - playedAt) / interval);
          if (count > 0) {
            playedAt += count * interval;
            step(count);
          }
          if (position() >= shown.length - 1) setPlaying(false);
          else requestAnimationFrame(playOn);
        }

        // MARK: The part in view

        function look(from, size) {
          size = Math.min(Math.max(size, 1e-8), 1);
          from = Math.min(Math.max(from, 0), 1 - size);
          view = { from, to: from + size };
          askForDrawing();
        }

        // Keeps a place where it is.
        function zoom(factor, place) { look(place - (place - view.from) * factor, (view.to - view.from) * factor); }

        function zoomAtPresent(factor) {
          const place = events[present]?.place ?? 0.5;
          zoom(factor, Math.min(Math.max(place, view.from), view.to));
        }

        function showNearest(x, y) {
          const [first, stop] = eventsInView();
          let nearest = -1, least = 20;
          for (let place = firstPlace(shown, first); place < shown.length && shown[place] < stop; place += 1) {
            const event = events[shown[place]];
            const distance = Math.hypot(xOfPlace(event.place) - x, yOf(event) - y);
            if (distance < least) [nearest, least] = [place, distance];
          }
          if (nearest >= 0) show(nearest);
        }

        let drag = null;
        canvas.onpointerdown = (event) => {
          drag = { x: event.offsetX, from: view.from, hasMoved: false };
          canvas.setPointerCapture(event.pointerId);
        };
        canvas.onpointermove = (event) => {
          if (!drag) return;
          const moved = event.offsetX - drag.x;
          if (Math.abs(moved) > 3) drag.hasMoved = true;
          const size = view.to - view.from;
          if (drag.hasMoved) look(drag.from - moved / usedWidth() * size, size);
        };
        canvas.onpointerup = (event) => {
          if (drag && !drag.hasMoved) showNearest(event.offsetX, event.offsetY);
          drag = null;
        };
        canvas.onpointercancel = () => { drag = null; };
        canvas.addEventListener("wheel", (event) => {
          const size = view.to - view.from;
          if (event.ctrlKey) zoom(Math.exp(event.deltaY / 300), Math.min(Math.max(placeOfX(event.offsetX), 0), 1));
          else if (!event.shiftKey && !event.deltaX) return;
          else look(view.from + (event.deltaX || event.deltaY) / width * size, size);
          event.preventDefault();
        }, { passive: false });

        element("previous").onclick = () => step(-1);
        element("next").onclick = () => step(1);
        element("play").onclick = () => setPlaying(playedAt === null);
        element("closer").onclick = () => zoomAtPresent(0.5);
        element("farther").onclick = () => zoomAtPresent(2);
        element("whole").onclick = () => look(0, 1);
        element("shorten").onchange = (event) => {
          setAxis(event.target.checked);
          look(0, 1);
        };
        element("bytes").onchange = element("search").oninput = filter;
        slider.oninput = () => show(Number(slider.value));
        list.onscroll = fillList;
        area.onscroll = askForDrawing;

        document.onkeydown = (event) => {
          if (event.ctrlKey || event.metaKey || event.altKey || ["search", "speed"].includes(event.target.id)) return;
          const actions = {
            ArrowLeft: () => step(-1), ArrowRight: () => step(1), ArrowUp: () => step(-1), ArrowDown: () => step(1),
            PageUp: () => step(-20), PageDown: () => step(20), Home: () => step(-events.length),
            End: () => step(events.length), "+": () => zoomAtPresent(0.5), "-": () => zoomAtPresent(2),
            0: () => look(0, 1), " ": () => setPlaying(playedAt === null),
          };
          const action = actions[event.key];
          // The space bar presses a button that has the focus.
          if (!action || (event.key === " " && event.target.matches("button, input[type=checkbox], summary"))) return;
          event.preventDefault();
          action();
        };

        readColors();
        matchMedia("(prefers-color-scheme: dark)").onchange = () => { readColors(); askForDrawing(); };
        new ResizeObserver(() => show(present < 0 ? -1 : position())).observe(area);
        fillHeader();
        filter();
        // The failure is of interest first.
        const failed = events.findLastIndex((event) => event.kind === "failure");
        if (failed >= 0) show(failed);
        draw();
        """#
}
