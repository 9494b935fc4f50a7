// One import provides the configuration, states and errors of a connection as well.
@_exported public import LifelineCore
