import LifelineCore
import Testing

@Suite struct ReplyBacklogTests {
    @Test func readingStopsAtTheHighMarkAndGoesOnFromTheLowOne() {
        var backlog = ReplyBacklog(marks: WaterMarks(low: 10, high: 20))
        #expect(backlog.queued(byteCount: 9) == false)
        backlog.writeStarted()
        #expect(backlog.queued(byteCount: 10) == false)
        #expect(backlog.queued(byteCount: 1) == true, "in flight and queued")
        #expect(backlog.queued(byteCount: 100) == false, "it is said once")
        #expect(backlog.writeCompleted() == false, "111 are queued")
        backlog.writeStarted()
        #expect(backlog.queued(byteCount: 11) == false)
        #expect(backlog.writeCompleted() == false)
        backlog.writeStarted()
        #expect(backlog.queued(byteCount: 10) == false)
        #expect(backlog.writeCompleted() == true)
        #expect(backlog.writeCompleted() == false)
        #expect(backlog.queued(byteCount: 10) == true)
    }

    @Test func writesWithoutRepliesChangeNothing() {
        var backlog = ReplyBacklog(marks: WaterMarks(low: 10, high: 20))
        backlog.writeStarted()
        #expect(backlog.writeCompleted() == false)
        #expect(backlog.queued(byteCount: 0) == false)
    }
}
