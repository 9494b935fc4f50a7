import FaultSupport
import Testing

/// The client notices each fault with the right reason, recovers step by step, and accounts for every message.
/// `scripts/faults` measures the times, on an otherwise idle machine.
@Suite(.serialized, .timeLimit(.minutes(3))) struct RecoveryTests {
    @Test(arguments: Trials.all) func everyFault(trial: Trial) async {
        let outcome = await Trials(family: .ipv4, isPatient: true).once(trial)
        #expect(outcome.misses == [])
    }

    @Test(arguments: Trials.all) func everyFaultOverIPv6(trial: Trial) async {
        let outcome = await Trials(family: .ipv6, isPatient: true).once(trial)
        #expect(outcome.misses == [])
    }

    /// Three times as long as it takes to give up a dead peer. This fails on kernels before Linux 6.15.
    @Test func lostPacketsAreNotTakenForALostPeer() async {
        let outcome = await Trials(family: .ipv4).loss(.seconds(48))
        #expect(outcome.misses == [])
    }
}
