extension StoryPage {
    /// The part of the script that draws the time line.
    static let drawing = #"""
        const story = JSON.parse(document.getElementById("story").textContent);
        const { events, lanes, connections, bands, transfers, end } = story.picture;
        const element = (id) => document.getElementById(id);
        const canvas = element("canvas");
        const area = element("area");
        const context = canvas.getContext("2d");
        const font = "12px system-ui, sans-serif";

        function seconds(time, digits = 6) { return (time / 1e9).toFixed(digits) + " s"; }

        // The first place of a sorted list whose key is at least, or with `after` above, a value.
        function firstPlace(list, value, key = (item) => item, after = false) {
          let low = 0, high = list.length;
          while (low < high) {
            const middle = (low + high) >> 1;
            if (key(list[middle]) < value || (after && key(list[middle]) === value)) low = middle + 1;
            else high = middle;
          }
          return low;
        }

        // An axis maps times to places from 0 to 1.
        function makeAxis(shortensWaits) {
          const times = [events.length ? Math.min(0, events[0].time) : 0], places = [0];
          function add(time) {
            const gap = time - times[times.length - 1];
            if (gap <= 0) return;
            // Where waits are shortened, a millisecond takes as much room as a step, and a minute 16 times as much.
            const room = shortensWaits ? Math.log2(1 + gap / 1e6) + 0.2 : gap;
            times.push(time);
            places.push(places[places.length - 1] + room);
          }
          for (const event of events) add(event.time);
          // A story that fails at once needs an axis, too.
          add(Math.max(end, 1e6));
          const whole = places[places.length - 1];
          function convert(value, from, to, fromScale, toScale) {
            const scaled = value * fromScale;
            const right = Math.min(Math.max(firstPlace(from, scaled), 1), from.length - 1);
            const part = (scaled - from[right - 1]) / (from[right] - from[right - 1]);
            return (to[right - 1] + Math.min(Math.max(part, 0), 1) * (to[right] - to[right - 1])) * toScale;
          }
          return {
            placeOf: (time) => convert(time, times, places, 1, 1 / whole),
            timeOf: (place) => convert(place, places, times, whole, 1),
          };
        }

        let axis;
        function setAxis(shortensWaits) {
          axis = makeAxis(shortensWaits);
          for (const event of events) event.place = axis.placeOf(event.time);
          for (const transfer of transfers) {
            transfer.sentPlace = axis.placeOf(transfer.sent);
            transfer.receivedPlace = axis.placeOf(transfer.received ?? transfer.sent);
          }
        }
        setAxis(true);
        // The places at the left and the right edge.
        let view = { from: 0, to: 1 };
        // The number of the present event; -1: there is none.
        let present = events.length - 1;
        // Lanes that the filter leaves; null: all.
        let chosenLanes = null;

        // Heights: of the ruler, the row of marks and each bar of a connection.
        const rulerHeight = 24, marksHeight = 22, barHeight = 7, maximumBars = 12, margin = 10;
        let gutter = 80;

        // Bars of connections that overlap in a lane stand under each other, as far as there is room.
        const laneShapes = lanes.map(() => ({ top: 0, height: 0, freeAt: [] }));
        const bars = new Map();
        function takeBar(lane, start, stop) {
          const freeAt = laneShapes[lane].freeAt;
          let bar = freeAt.findIndex((time) => time <= start);
          if (bar < 0) bar = freeAt.length < maximumBars ? freeAt.length : freeAt.indexOf(Math.min(...freeAt));
          freeAt[bar] = stop;
          return bar;
        }
        for (const connection of connections) {
          const stop = Math.max(connection.clientEnd ?? end, connection.serverEnd ?? connection.clientEnd ?? end) + 1;
          const client = takeBar(connection.client, connection.start, stop);
          const isInside = connection.client === connection.server;
          bars.set(connection.number, {
            connection, client, server: isInside ? client : takeBar(connection.server, connection.start, stop),
          });
        }
        let lanesHeight = 0;
        // Lanes with connections share the room that is left, so that arrows between them can be told apart.
        function placeLanes(room) {
          const heights = laneShapes.map((shape) => marksHeight + Math.max(shape.freeAt.length, 1) * barHeight + 6);
          const connected = laneShapes.filter((shape) => shape.freeAt.length).length;
          const rest = room - heights.reduce((sum, height) => sum + height, 0);
          const extra = Math.min(Math.max(rest / Math.max(connected, 1), 0), 90);
          lanesHeight = 0;
          laneShapes.forEach((shape, lane) => {
            shape.top = lanesHeight;
            shape.height = heights[lane] + (shape.freeAt.length ? extra : 0);
            lanesHeight += shape.height;
          });
        }

        let width = 0, height = 0, colors = {}, isDrawingAsked = false;

        function readColors() {
          const style = getComputedStyle(document.documentElement);
          for (const name of ["back", "raised", "line", "ink", "quiet", "text", "host", "connection", "bytes", "fault",
            "failure", "no-link", "asleep", "killed", "present"]) colors[name] = style.getPropertyValue("--" + name);
          colors.isDark = matchMedia("(prefers-color-scheme: dark)").matches;
        }

        function usedLeft() { return gutter + margin; }
        function usedWidth() { return width - gutter - 2 * margin; }
        function xOfPlace(place) { return usedLeft() + (place - view.from) / (view.to - view.from) * usedWidth(); }
        function placeOfX(x) { return view.from + (x - usedLeft()) / usedWidth() * (view.to - view.from); }
        function xOf(time) { return xOfPlace(axis.placeOf(time)); }
        function laneTop(lane) { return rulerHeight + laneShapes[lane].top - area.scrollTop; }
        function barY(lane, bar) { return laneTop(lane) + marksHeight + bar * barHeight + 3; }
        function endY(connection, isClient) {
          const shape = bars.get(connection.number);
          return isClient ? barY(connection.client, shape.client) : barY(connection.server, shape.server);
        }
        function yOf(event) {
          const shape = bars.get(event.connection);
          if (shape && event.lane === shape.connection.client) return endY(shape.connection, true);
          if (shape && event.lane === shape.connection.server) return endY(shape.connection, false);
          return laneTop(event.lane) + marksHeight / 2;
        }

        function draw() {
          isDrawingAsked = false;
          const ratio = devicePixelRatio;
          width = area.clientWidth;
          height = area.clientHeight;
          placeLanes(height - rulerHeight);
          element("height").style.height = Math.max(0, rulerHeight + lanesHeight - height) + "px";
          canvas.style.height = height + "px";
          if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
          if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
          context.setTransform(ratio, 0, 0, ratio, 0, 0);
          context.font = font;
          context.textBaseline = "middle";
          const longest = Math.max(40, ...lanes.map((lane) => context.measureText(lane).width));
          gutter = Math.min(longest + 20, 150, width / 4);
          context.fillStyle = colors.back;
          context.fillRect(0, 0, width, height);
          context.save();
          context.beginPath();
          context.rect(0, rulerHeight, width, height - rulerHeight);
          context.clip();
          drawLanes();
          context.save();
          context.beginPath();
          context.rect(gutter, rulerHeight, width - gutter, height - rulerHeight);
          context.clip();
          drawBands();
          drawConnections();
          drawTransfers();
          drawEvents();
          context.restore();
          drawNames();
          context.restore();
          drawRuler();
          drawPresent();
        }

        function askForDrawing() {
          if (!isDrawingAsked) requestAnimationFrame(draw);
          isDrawingAsked = true;
        }

        function drawLanes() {
          laneShapes.forEach((shape, lane) => {
            context.fillStyle = lane % 2 ? colors.raised : colors.back;
            context.fillRect(0, laneTop(lane), width, shape.height);
          });
        }

        // A text in a room, with an ellipsis where it is longer; nothing where there is no room for one.
        function drawText(text, x, y, room) {
          if (context.measureText(text).width > room) {
            let length = text.length;
            while (length > 0 && context.measureText(text.slice(0, length) + "…").width > room) length -= 1;
            if (length === 0) return;
            text = text.slice(0, length) + "…";
          }
          context.fillText(text, x, y);
        }

        function drawNames() {
          lanes.forEach((name, lane) => {
            context.fillStyle = lane % 2 ? colors.raised : colors.back;
            context.fillRect(0, laneTop(lane), gutter, laneShapes[lane].height);
            context.fillStyle = !chosenLanes || chosenLanes.has(lane) ? colors.ink : colors.quiet;
            drawText(name, 12, laneTop(lane) + marksHeight / 2, gutter - 18);
          });
          context.fillStyle = colors.line;
          context.fillRect(gutter - 1, rulerHeight, 1, height);
        }

        // States of one host can be told apart at the same time: the link is above, what stands still below.
        const bandShapes = {
          killed: { color: "killed", top: 0, height: 1 },
          noLink: { color: "no-link", top: 0, height: 0.5 },
          asleep: { color: "asleep", top: 0.5, height: 0.5 },
        };
        function drawBands() {
          for (const band of bands) {
            const left = Math.max(xOf(band.start), gutter), right = Math.min(xOf(band.end ?? end), width);
            if (right < gutter || left > width) continue;
            const { height: laneHeight } = laneShapes[band.lane];
            const shape = bandShapes[band.kind];
            context.fillStyle = colors[shape.color];
            context.globalAlpha = 0.75;
            const top = laneTop(band.lane) + shape.top * laneHeight;
            context.fillRect(left, top, Math.max(right - left, 1), shape.height * laneHeight);
            context.globalAlpha = 1;
          }
        }

        function colorOf(connection) {
          return `hsl(${connection.number * 47 % 360} 55% ${colors.isDark ? 62 : 38}%)`;
        }

        function line(x1, y1, x2, y2, isDashed = false) {
          context.setLineDash(isDashed ? [3, 3] : []);
          context.beginPath();
          context.moveTo(x1, y1);
          context.lineTo(x2, y2);
          context.stroke();
        }

        function bar(start, stop, y) { line(xOf(start), y, Math.max(xOf(stop), xOf(start) + 1), y); }

        function cross(x, y) {
          context.strokeStyle = colors.fault;
          context.lineWidth = 1.5;
          line(x - 3, y - 3, x + 3, y + 3);
          line(x - 3, y + 3, x + 3, y - 3);
        }

        function drawConnections() {
          const chosen = events[present]?.connection;
          for (const connection of connections) {
            const clientStop = connection.clientEnd ?? end, serverStop = connection.serverEnd ?? end;
            const left = xOf(connection.start);
            const right = xOf(connection.serverOpen === undefined ? clientStop : Math.max(clientStop, serverStop));
            if (right < gutter || left > width) continue;
            const [clientY, serverY] = [endY(connection, true), endY(connection, false)];
            context.strokeStyle = colorOf(connection);
            const thickness = connection.number === chosen ? 4 : 2;
            context.lineWidth = 1;
            line(left, clientY, xOf(connection.clientOpen ?? clientStop), clientY, true);
            if (connection.serverOpen !== undefined) {
              line(left, clientY, xOf(connection.serverOpen), serverY, true);
              context.lineWidth = thickness;
              bar(connection.serverOpen, serverStop, serverY);
            }
            if (connection.clientOpen !== undefined) {
              context.lineWidth = thickness;
              bar(connection.clientOpen, clientStop, clientY);
            }
            if (connection.hasFailed) cross(xOf(clientStop), clientY);
            if (connection.cut !== undefined) {
              cross(xOf(connection.cut), clientY);
              if (connection.serverOpen !== undefined) cross(xOf(connection.cut), serverY);
            }
          }
        }

        // From when bytes were written to when they were read. Arrows that would cover each other are drawn once.
        function drawTransfers() {
          const seen = new Set();
          const arrows = new Map(), lost = [];
          const stop = firstPlace(transfers, view.to, (transfer) => transfer.sentPlace, true);
          const isCrowded = stop - firstPlace(transfers, view.from, (transfer) => transfer.sentPlace) > 1000;
          for (let index = 0; index < stop; index += 1) {
            const transfer = transfers[index];
            if (transfer.receivedPlace < view.from || !bars.has(transfer.connection)) continue;
            const left = Math.round(xOfPlace(transfer.sentPlace));
            const slant = Math.round(xOfPlace(transfer.receivedPlace)) - left;
            // In a crowd, one that is nearly upright is drawn so.
            const right = left + (isCrowded && slant < 3 ? 0 : slant);
            const isLost = transfer.received === undefined;
            // A canvas has fewer than 2^15 columns; those left of it may count as one.
            const columns = Math.max(left, 0) * 32_768 + Math.min(right, 32_767);
            const key = (transfer.connection * 4 + (transfer.byClient ? 2 : 0) + (isLost ? 1 : 0)) * 2 ** 30 + columns;
            if (left >= 0 && seen.has(key)) continue;
            seen.add(key);
            const arrow = { left, right, byClient: transfer.byClient };
            if (isLost) lost.push([transfer.connection, arrow]);
            else if (arrows.has(transfer.connection)) arrows.get(transfer.connection).push(arrow);
            else arrows.set(transfer.connection, [arrow]);
          }
          const chosen = events[present]?.connection;
          context.lineWidth = 1;
          context.setLineDash([]);
          for (const [number, list] of arrows) {
            const { connection } = bars.get(number);
            context.strokeStyle = colorOf(connection);
            context.fillStyle = context.strokeStyle;
            context.globalAlpha = isCrowded ? 0.3 : number === chosen ? 1 : 0.65;
            const [top, bottom] = [endY(connection, true), endY(connection, false)].sort((a, b) => a - b);
            context.beginPath();
            for (const { left, right, byClient } of list) {
              if (isCrowded && left === right) context.fillRect(left, top, 1, bottom - top);
              else addArrow(left, endY(connection, byClient), right, endY(connection, !byClient), !isCrowded);
            }
            context.stroke();
          }
          context.globalAlpha = 1;
          for (const [number, { left, byClient }] of lost) {
            const { connection } = bars.get(number);
            const from = endY(connection, byClient), to = endY(connection, !byClient);
            const y = from + Math.sign(to - from) * Math.min(14, Math.abs(to - from) / 2);
            context.strokeStyle = colorOf(connection);
            line(left, from, left + 5, y);
            cross(left + 5, y);
          }
        }

        function addArrow(x1, y1, x2, y2, hasHead) {
          context.moveTo(x1, y1);
          context.lineTo(x2, y2);
          const length = Math.hypot(x2 - x1, y2 - y1);
          if (!hasHead || length < 12) return;
          const dx = (x2 - x1) / length * 6, dy = (y2 - y1) / length * 6;
          context.moveTo(x2 - dx + dy / 2, y2 - dy - dx / 2);
          context.lineTo(x2, y2);
          context.lineTo(x2 - dx - dy / 2, y2 - dy + dx / 2);
        }

        // The numbers of the first event in view, and of the one behind the last.
        function eventsInView() {
          return [
            firstPlace(events, view.from, (event) => event.place),
            firstPlace(events, view.to, (event) => event.place, true),
          ];
        }

        const kinds = ["text", "fault", "host", "connection", "bytes", "failure"];
        function drawEvents() {
          const [first, stop] = eventsInView();
          // Marks that would cover each other are drawn once.
          const seen = new Set();
          for (let index = first; index < stop; index += 1) {
            const event = events[index];
            // The arrows show them.
            if (event.kind === "bytes" && index !== present) continue;
            const x = Math.round(xOfPlace(event.place)), y = yOf(event);
            const key = ((Math.round(y) + 65_536) * 32_768 + x) * 8 + kinds.indexOf(event.kind);
            if (seen.has(key)) continue;
            seen.add(key);
            context.globalAlpha = !chosenLanes || chosenLanes.has(event.lane) ? 1 : 0.3;
            drawMark(event.kind, x, y);
          }
          context.globalAlpha = 1;
        }

        function drawMark(kind, x, y) {
          context.fillStyle = colors[kind];
          context.beginPath();
          if (kind === "fault") {
            for (const [dx, dy] of [[0, -5], [5, 0], [0, 5], [-5, 0]]) context.lineTo(x + dx, y + dy);
          } else if (kind === "host") {
            context.rect(x - 3.5, y - 3.5, 7, 7);
          } else if (kind === "connection") {
            context.rect(x - 1, y - 3, 2, 6);
          } else if (kind === "failure") {
            for (const [dx, dy] of [[-6, -4], [-4, -6], [0, -2], [4, -6], [6, -4], [2, 0], [6, 4], [4, 6], [0, 2],
              [-4, 6], [-6, 4], [-2, 0]]) context.lineTo(x + dx, y + dy);
          } else {
            context.arc(x, y, 3, 0, 2 * Math.PI);
          }
          context.fill();
        }

        function drawRuler() {
          context.fillStyle = colors.raised;
          context.fillRect(0, 0, width, rulerHeight);
          context.fillStyle = colors.line;
          context.fillRect(0, rulerHeight - 1, width, 1);
          context.fillStyle = colors.quiet;
          // As many digits as the times in view need.
          const span = axis.timeOf(Math.min(view.to, 1)) - axis.timeOf(Math.max(view.from, 0));
          const digits = Math.min(Math.max(Math.ceil(2 - Math.log10(Math.max(span, 1) / 1e9)), 1), 6);
          let free = 0;
          for (let x = usedLeft(); x < width - 20; x += 20) {
            if (x < free) continue;
            const label = seconds(axis.timeOf(Math.min(Math.max(placeOfX(x), 0), 1)), digits);
            const room = context.measureText(label).width;
            if (x + 4 + room > width) break;
            context.fillRect(x, rulerHeight - 6, 1, 5);
            context.fillText(label, x + 4, rulerHeight / 2 - 1);
            free = x + room + 24;
          }
        }

        function drawPresent() {
          const event = events[present];
          if (!event) return;
          const x = xOfPlace(event.place);
          if (x < gutter - 1 || x > width) return;
          context.strokeStyle = context.fillStyle = colors.present;
          context.lineWidth = 1;
          line(x, rulerHeight - 6, x, height);
          const y = yOf(event);
          if (y < rulerHeight) return;
          context.lineWidth = 2;
          context.beginPath();
          context.arc(x, y, 7, 0, 2 * Math.PI);
          context.stroke();
        }
        """#
}
