internal import Foundation

/// Draws results as SVG: a panel for each case, in it a group of bars for each workload, a bar for each contender.
struct Chart {
    let results: Results

    // Sizes in pixels.
    private let barWidth = 26.0
    private let groupGap = 18.0
    private let panelGap = 46.0
    private let barsHeight = 130.0
    private let margin = 24.0
    private let headerHeight = 92.0

    /// Ratios above this are drawn as bars that are cut, lest they leave nothing to be seen of the others.
    private let highestRatio = 20.0

    /// Colours that also the colour-blind tell apart (Okabe and Ito), ours first.
    private let colours = ["#0072B2", "#56B4E9", "#E69F00", "#009E73", "#CC79A7"]

    var svg: String {
        let columns = 2
        let rows = (results.cases.count + columns - 1) / columns
        let width = 2 * margin + Double(columns) * panelWidth + Double(columns - 1) * panelGap
        let height = headerHeight + Double(rows) * panelHeight + margin
        let panels = results.cases.enumerated().map { index, name in
            panel(
                name,
                x: margin + Double(index % columns) * (panelWidth + panelGap),
                y: headerHeight + Double(index / columns) * panelHeight
            )
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(number(width))" height="\(number(height))" \
            viewBox="0 0 \(number(width)) \(number(height))" font-family="sans-serif" font-size="11" fill="#222">
            <title>Cost of messages, relative to Lifeline</title>
            <rect width="100%" height="100%" fill="white"/>
            \(text("Cost relative to lifeline", x: margin, y: 32, size: 18, weight: "bold"))
            \(text(explanation, x: margin, y: 50))
            \(legend(y: 74))
            \(panels.joined(separator: "\n"))
            </svg>

            """
    }

    private var explanation: String {
        "1 is lifeline's own time or memory, 5 is five times that: shorter is better. Bars above \(number(highestRatio)) "
            + "are cut. Medians of one run."
    }

    private var groupWidth: Double { Double(results.contenders.count) * barWidth }
    private var panelWidth: Double { Double(results.workloads.count) * (groupWidth + groupGap) - groupGap }
    private var panelHeight: Double { barsHeight + 78 }

    private func legend(y: Double) -> String {
        var x = margin
        return results.contenders.enumerated().map { index, contender in
            defer { x += 34 + 6.5 * Double(contender.count) }
            return """
                <rect x="\(number(x))" y="\(number(y - 10))" width="12" height="12" fill="\(colour(index))"/>
                \(text(contender, x: x + 17, y: y))
                """
        }
        .joined(separator: "\n")
    }

    private func panel(_ name: String, x: Double, y: Double) -> String {
        let highest = results.rows.filter { $0.case == name }.map(\.ratio).max() ?? 1
        let scale = barsHeight / min(max(highest, 1), highestRatio)
        let base = y + 34 + barsHeight
        let groups = results.workloads.enumerated().map { index, workload in
            group(name, workload, x: x + Double(index) * (groupWidth + groupGap), base: base, scale: scale)
        }
        let one = number(base - scale)
        return """
            \(text("\(name), \(results.unit(of: name))", x: x, y: y + 12, size: 13, weight: "bold"))
            \(groups.joined(separator: "\n"))
            <line x1="\(number(x))" x2="\(number(x + panelWidth))" y1="\(one)" y2="\(one)" stroke="#222" \
            stroke-width="0.7" stroke-dasharray="3 3"/>
            <line x1="\(number(x))" x2="\(number(x + panelWidth))" y1="\(number(base))" y2="\(number(base))" stroke="#222"/>
            """
    }

    private func group(_ name: String, _ workload: String, x: Double, base: Double, scale: Double) -> String {
        let rows = results.contenders.enumerated().compactMap { index, contender in
            results.row(name, workload, contender).map { (colour: colour(index), row: $0) }
        }
        let bars = rows.enumerated().map { index, bar in
            self.bar(bar.row, colour: bar.colour, x: x + Double(index) * barWidth, base: base, scale: scale)
        }
        let centre = x + (Double(rows.count) * barWidth - 3) / 2
        let reference =
            results.row(name, workload, Results.reference)
            .map { " (1 = \(String(format: "%.0f", $0.value)))" } ?? ""
        return (bars + [text(workload + reference, x: centre, y: base + 16, anchor: "middle")]).joined(separator: "\n")
    }

    private func bar(_ row: Row, colour: String, x: Double, base: Double, scale: Double) -> String {
        let width = barWidth - 3
        let height = min(row.ratio, highestRatio) * scale
        let top = base - height
        let cut = """
            <rect x="\(number(x))" y="\(number(top + 12))" width="\(number(width))" height="3" fill="white"/>
            """
        return """
            <rect x="\(number(x))" y="\(number(top))" width="\(number(width))" height="\(number(height))" \
            fill="\(colour)"><title>\(row.contender): \(row.value) \(row.unit)</title></rect>
            \(row.ratio > highestRatio ? cut : "")
            \(text(label(row.ratio), x: x + width / 2, y: top - 4, size: 10, anchor: "middle"))
            """
    }

    private func text(
        _ text: String,
        x: Double,
        y: Double,
        size: Int = 11,
        weight: String = "normal",
        anchor: String = "start"
    ) -> String {
        """
        <text x="\(number(x))" y="\(number(y))" font-size="\(size)" font-weight="\(weight)" \
        text-anchor="\(anchor)">\(text)</text>
        """
    }

    private func colour(_ index: Int) -> String { colours[index % colours.count] }
    private func label(_ ratio: Double) -> String { String(format: ratio < 9.95 ? "%.1f" : "%.0f", ratio) }
    private func number(_ value: Double) -> String { String(format: "%g", (value * 10).rounded() / 10) }
}
