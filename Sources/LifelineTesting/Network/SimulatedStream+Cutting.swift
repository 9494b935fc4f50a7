internal import LifelineCore

// Cutting it between its ends.
extension SimulatedStream {
    /// Cuts the connection between its ends after `count` more bytes from the client, or at once.
    package func cut(_ cut: Cut, afterClientBytes count: Int) {
        if count > 0 {
            directions[0].cut = (count, cut)
        } else {
            cutOff(cut)
        }
    }

    /// Takes back a cut that has not come yet.
    package func cancelCut() {
        directions[0].cut = nil
    }

    func cutOff(_ cut: Cut) {
        guard !isCutOff else { return }
        simulation.note(.connection(number, .cut(isReset: cut == .reset)), at: .network)
        isCutOff = true
        guard cut == .reset else { return }
        // Not from within what is under way.
        schedule(after: .zero) {
            self.fail(.client, .connectionReset)
            self.fail(.server, .connectionReset)
        }
    }
}
