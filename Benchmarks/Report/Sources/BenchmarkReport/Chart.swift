internal import Foundation

/// Draws results as SVG, relative to Lifeline's: in each panel a group of bars for each workload, a bar for each
/// contender.
public struct Chart {
    private let title: String
    private let panels: [Results.Panel]
    private let contenders: [String]
    private let footnote: String

    /// - Parameters:
    ///   - contenders: all of them, in the order in which they are shown, ours first.
    ///   - footnote: explains the value 1, and which direction is better.
    public init(_ results: Results, title: String, contenders: [String], footnote: String) {
        self.title = title
        self.panels = results.panels
        self.contenders = contenders.filter { name in results.rows.contains { $0.contender == name } }
        self.footnote = footnote
    }

    // Sizes in pixels.
    private let barWidth = 26.0
    private let labelCharacterWidth = 6.0
    private let groupGap = 18.0
    private let panelGap = 46.0
    private let barsHeight = 130.0
    private let margin = 24.0
    private let legendLineHeight = 18.0

    /// Bars of higher ratios are truncated, so that the others stay visible.
    private let highestRatio = 20.0

    /// Colours that colour-blind people can distinguish (Okabe and Ito, and two of Tol's), ours first.
    private let colours = [
        "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442", "#999999", "#000000",
        "#44AA99", "#882255",
    ]

    private let columns = 2

    public var svg: String {
        let legend = legend(y: 74)
        let headerHeight = legend.end
        let rows = (panels.count + columns - 1) / columns
        let height = headerHeight + Double(rows) * panelHeight + margin
        let panels = panels.enumerated().map { index, panel in
            draw(
                panel,
                x: margin + Double(index % columns) * (panelWidth + panelGap),
                y: headerHeight + Double(index / columns) * panelHeight
            )
        }
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(number(width))" height="\(number(height))" \
            viewBox="0 0 \(number(width)) \(number(height))" font-family="sans-serif" font-size="11" fill="#222">
            <title>\(title), relative to Lifeline</title>
            <rect width="100%" height="100%" fill="white"/>
            \(text("\(title), relative to Lifeline", x: margin, y: 32, size: 18, weight: "bold"))
            \(text(explanation, x: margin, y: 50))
            \(legend.text)
            \(panels.joined(separator: "\n"))
            </svg>

            """
    }

    private var explanation: String {
        "\(footnote) Bars above \(number(highestRatio)) are cut. Medians of one run."
    }

    // The values of the panel that needs the most room.
    private var groupWidth: Double {
        let counts = panels.flatMap { panel in
            panel.workloads.map { workload in panel.rows.count { $0.workload == workload } }
        }
        let labels = panels.flatMap { panel in panel.workloads.map { label(of: $0, in: panel).count } }
        return max(Double(counts.max() ?? 0) * barWidth, Double(labels.max() ?? 0) * labelCharacterWidth)
    }
    private var panelWidth: Double {
        Double(panels.map(\.workloads.count).max() ?? 0) * (groupWidth + groupGap) - groupGap
    }
    private var panelHeight: Double { barsHeight + 78 }

    private var width: Double {
        2 * margin + Double(columns) * panelWidth + Double(columns - 1) * panelGap
    }

    /// The names of the contenders, in as many lines as they need, and the position at which the panels may begin.
    private func legend(y top: Double) -> (text: String, end: Double) {
        var (x, y) = (margin, top)
        let names = contenders.enumerated().map { index, contender in
            let nameWidth = 34 + 6.5 * Double(contender.count)
            if x > margin, x + nameWidth > width { (x, y) = (margin, y + legendLineHeight) }
            defer { x += nameWidth }
            return """
                <rect x="\(number(x))" y="\(number(y - 10))" width="12" height="12" fill="\(colour(index))"/>
                \(text(contender, x: x + 17, y: y))
                """
        }
        return (names.joined(separator: "\n"), y + legendLineHeight)
    }

    private func draw(_ panel: Results.Panel, x: Double, y: Double) -> String {
        let highest = panel.rows.compactMap(\.ratio).max() ?? 1
        let scale = barsHeight / min(max(highest, 1), highestRatio)
        let base = y + 34 + barsHeight
        let groups = panel.workloads.enumerated().map { index, workload in
            group(panel, workload, x: x + Double(index) * (groupWidth + groupGap), base: base, scale: scale)
        }
        let one = number(base - scale)
        return """
            \(text("\(panel.case), \(panel.unit)", x: x, y: y + 12, size: 13, weight: "bold"))
            \(groups.joined(separator: "\n"))
            <line x1="\(number(x))" x2="\(number(x + panelWidth))" y1="\(one)" y2="\(one)" stroke="#222" \
            stroke-width="0.7" stroke-dasharray="3 3"/>
            <line x1="\(number(x))" x2="\(number(x + panelWidth))" y1="\(number(base))" y2="\(number(base))" stroke="#222"/>
            """
    }

    private func group(_ panel: Results.Panel, _ workload: String, x: Double, base: Double, scale: Double) -> String {
        let rows = contenders.enumerated().compactMap { index, contender in
            panel.row(workload, contender).map { (colour: colour(index), row: $0) }
        }
        // A bar without height if there is no ratio.
        let left = x + (groupWidth - Double(rows.count) * barWidth) / 2
        let bars = rows.enumerated().map { index, bar in
            self.bar(bar.row, colour: bar.colour, x: left + Double(index) * barWidth, base: base, scale: scale)
        }
        let centre = x + groupWidth / 2
        let label = text(label(of: workload, in: panel), x: centre, y: base + 16, anchor: "middle")
        return (bars + [label]).joined(separator: "\n")
    }

    private func label(of workload: String, in panel: Results.Panel) -> String {
        let reference = panel.reference(of: workload).map { " (1 = \(String(format: "%.0f", $0.value)))" }
        return workload + (reference ?? "")
    }

    private func bar(_ row: Row, colour: String, x: Double, base: Double, scale: Double) -> String {
        let width = barWidth - 3
        let ratio = row.ratio ?? 0
        let height = min(ratio, highestRatio) * scale
        let top = base - height
        let cut = """
            <rect x="\(number(x))" y="\(number(top + 12))" width="\(number(width))" height="3" fill="white"/>
            """
        return """
            <rect x="\(number(x))" y="\(number(top))" width="\(number(width))" height="\(number(height))" \
            fill="\(colour)"><title>\(row.contender): \(row.value) \(row.unit)</title></rect>
            \(ratio > highestRatio ? cut : "")
            \(text(row.ratio.map(label) ?? "-", x: x + width / 2, y: top - 4, size: 10, anchor: "middle"))
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
