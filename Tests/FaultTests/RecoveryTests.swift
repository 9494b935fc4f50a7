import FaultSupport
import Testing

/// The client notices each fault for what it is, recovers step by step, and accounts for every message. How long that
/// may take `scripts/faults` measures, on a machine that does nothing else.
@Suite(.serialized, .timeLimit(.minutes(3))) struct RecoveryTests {
    @Test(arguments: Trials.all) func everyFault(trial: Trial) async {
        let outcome = await Trials(family: .ipv4, isPatient: true).once(trial)
        #expect(outcome.misses == [])
    }

    @Test(arguments: Trials.all) func everyFaultOverIPv6(trial: Trial) async {
        let outcome = await Trials(family: .ipv6, isPatient: true).once(trial)
        #expect(outcome.misses == [])
    }

    /// Three times as long as it would take to find a peer dead. Kernels before Linux 6.15 cannot do it.
    @Test func lostPacketsAreNotTakenForALostPeer() async {
        let outcome = await Trials(family: .ipv4).loss(.seconds(48))
        #expect(outcome.misses == [])
    }
}
