/// Generated code names the version of the interface that it was made for: `LIFELINE_INTERFACE_VERSION` in
/// lifeline_table.h. If this library has another version, the type does not exist, and the compiler reports that.
public enum _GeneratedForVersion6 {}
