// Who uses a connection also names endpoints, errors and messages: one import brings them all.
@_exported public import LifelineCore
@_exported public import LifelineMessages
