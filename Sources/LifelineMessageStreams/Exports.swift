// Code that reads a stream also needs the types of messages and of framing errors: one import brings them all.
@_exported public import LifelineCore
@_exported public import LifelineMessages
