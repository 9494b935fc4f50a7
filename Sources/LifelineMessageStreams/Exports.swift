// Who reads a stream also names its messages and the errors of framing: one import brings them all.
@_exported public import LifelineCore
@_exported public import LifelineMessages
