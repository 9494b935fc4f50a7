extension SessionMessageInDoubt {
    init(_ payload: OutgoingPayload, _ delivery: SessionDelivery, _ outcome: SessionDeliveryOutcome) {
        self.init(method: payload.method, delivery: delivery, payload: payload.payload, outcome: outcome)
    }
}
