import Foundation
import SwiftProtobuf

typealias DeviceConfig = Example_Device_V1_DeviceConfig
typealias Network = Example_Device_V1_Network
typealias PowerMode = Example_Device_V1_PowerMode
typealias Schedule = Example_Device_V1_Schedule
typealias UpdateRequest = Example_Device_V1_UpdateRequest
typealias MinimalConfig = Example_Device_V1_MinimalConfig

/// A device that others configure.
struct Device {
    private(set) var config: DeviceConfig
    private var clock = Clock()
    /// Earlier configurations, encoded.
    private(set) var history: [Data] = []

    init(id: String) {
        config = .with {
            $0.deviceID = id
            $0.network.ssid = "workshop"
            $0.labels = ["floor": "2"]
            $0.schedules = [
                .with {
                    $0.name = "report"
                    $0.every = Google_Protobuf_Duration(seconds: 90)
                    $0.hours = [6, 12, 18]
                }
            ]
        }
    }

    /// Applies the fields that the mask names; all fields that are set, without a mask.
    mutating func apply(_ data: Data) throws {
        let request = try UpdateRequest(serializedData: data, partial: true)
        history.append(try config.serializedData())
        if request.hasUpdateMask {
            try config.apply(request.config, paths: request.updateMask.paths)
        } else {
            try config.merge(serializedData: request.config.serializedData(partial: true), partial: true)
        }
        config.updatedAt = clock.advance(by: 60)
        config.revision += 1
    }

    mutating func rollBack() throws {
        guard let data = history.popLast() else { return }
        config = try DeviceConfig(serializedData: data)
    }
}

extension UpdateRequest {
    /// An update from a line that an operator typed, such as `power 2`.
    init?(command: String) {
        let words = command.split(separator: " ")
        guard words.count == 2, let number = Int(words[1]) else { return nil }
        self.init()
        switch words[0] {
        case "power":
            guard let mode = PowerMode(rawValue: number) else { return nil }
            config = .with { $0.powerMode = mode }
            updateMask = .with { $0.paths = ["power_mode"] }
        case "security":
            guard let security = Network.Security(rawValue: number) else { return nil }
            config = .with { $0.network = .with { $0.security = security } }
            updateMask = .with { $0.paths = ["network.security"] }
        default:
            return nil
        }
    }
}

struct UnknownPath: Error {
    let path: String
}

extension DeviceConfig {
    /// Copies the fields at `paths` from `other`, and clears those that it does not have.
    mutating func apply(_ other: DeviceConfig, paths: [String]) throws {
        for path in paths {
            switch path {
            case "display_name" where other.hasDisplayName: displayName = other.displayName
            case "display_name": clearDisplayName()
            case "power_mode" where other.hasPowerMode: powerMode = other.powerMode
            case "power_mode": clearPowerMode()
            case "network.address" where other.network.hasAddress: network.address = other.network.address
            case "network.address": network.clearAddress()
            case "network.dns_servers": network.dnsServers = other.network.dnsServers
            case "network.security": network.security = other.network.security
            case "network.dhcp": network.dhcp = other.network.dhcp
            case "schedules": schedules = other.schedules
            case "labels": labels.merge(other.labels) { _, new in new }
            case "certificate": certificate = other.certificate
            case "vendor": vendor = other.vendor
            default: throw UnknownPath(path: path)
            }
        }
    }

    var lines: [String] {
        let name = hasDisplayName ? displayName : "(\(displayName))"
        let power = hasPowerMode ? "\(powerMode) \(powerMode.rawValue)" : "default \(powerMode)"
        let address = network.hasAddress ? network.address : network.dhcp ? "dhcp" : "none"
        let updated = hasUpdatedAt ? "\(updatedAt.date.timeIntervalSince1970)" : "never"
        return [
            "\(deviceID) \(name) revision \(revision), updated \(updated), \(power)",
            "\(network.ssid) \(network.security) \(address) \(network.dnsServers)",
            "\(schedules.map { "\($0.name) every \($0.every.timeInterval) s at \($0.hours)" })",
            "\(labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }) \(certificate.hex)",
        ]
    }
}

private func updates() throws -> [Data] {
    let mask = Google_Protobuf_FieldMask(protoPaths: "display_name", "network.address", "network.dns_servers")
    return [
        try UpdateRequest.with {
            $0.config.displayName = "Press 4"
            $0.config.network.address = "192.0.2.7"
            $0.config.network.dnsServers = ["192.0.2.1", "192.0.2.2"]
            $0.config.powerMode = .performance
            $0.updateMask = mask
        }.serializedData(partial: true),
        try UpdateRequest.with {
            $0.config.labels = ["line": "A", "floor": "3"]
            $0.config.certificate = Data((1...12).reversed())
            $0.config.certificate.replaceSubrange(0..<2, with: [0xca, 0xfe])
            $0.config.certificate.removeLast(4)
            $0.updateMask = .with { $0.paths = ["labels", "certificate", "display_name"] }
        }.serializedData(partial: true),
        try UpdateRequest.with {
            $0.config.powerMode = .saving
            $0.config.schedules = [.with { $0.name = "backup" }]
            $0.config.schedules[0].every = Google_Protobuf_Duration(timeInterval: 0.5)
            $0.config.vendor = ["fan": Google_Protobuf_Value(structValue: ["rpm": 1200.5])]
        }.serializedData(partial: true),
    ]
}

func runDevice(in folder: URL, _ report: inout Report) throws {
    report.begin("Device")
    report.add("Power modes", values(of: PowerMode.self))
    report.add("Securities", values(of: Network.Security.self))
    var device = Device(id: "press-4")
    report.check(device.config.isInitialized, "a new configuration is complete")
    report.check(!device.config.hasDisplayName && !device.config.network.hasDhcp, "defaults are not set")
    report.add("New", device.config.lines)
    for update in try updates() {
        try device.apply(update)
        report.add("Update of \(update.count) bytes", device.config.lines)
    }
    for command in ["power 3", "power 4", "security 2", "security 9", "reboot 1"] {
        guard let request = UpdateRequest(command: command) else {
            report.add("Command", "\(command): not understood")
            continue
        }
        try device.apply(request.serializedData(partial: true))
        let (mode, security) = (device.config.powerMode, device.config.network.security)
        report.add("Command", "\(command): \(mode.rawValue) \(security.rawValue)")
    }
    report.check(try survivesAllFormats(device.config), "a configuration is the same in all formats")
    report.check(device.config.schedules.count == 2, "merging appends to lists")
    report.add("Digest", try canonicalData(of: device.config).digest)

    // The library's merge by a mask does what ours does.
    let source = DeviceConfig.with {
        $0.deviceID = "other"
        $0.displayName = "Press 5"
        $0.network.address = "192.0.2.9"
        $0.labels = ["line": "B"]
    }
    let mask = Google_Protobuf_FieldMask(protoPaths: ["display_name", "network.address"])
    var (ours, theirs) = (device.config, device.config)
    try ours.apply(source, paths: mask.paths)
    try theirs.merge(from: source, fieldMask: mask)
    report.check(ours == theirs, "both ways to merge by a mask agree")
    report.check(mask.isValid(for: DeviceConfig.self), "the mask names fields of a configuration")
    report.check(!DeviceConfig.isPathValid("network.colour"), "there is no such path")
    do {
        try ours.apply(source, paths: ["network.colour"])
        report.check(false, "an unknown path is refused")
    } catch let error as UnknownPath {
        report.add("Unknown path", error.path)
    }

    // A file in JSON, as people edit it.
    var options = JSONEncodingOptions()
    options.preserveProtoFieldNames = true
    options.alwaysPrintEnumsAsInts = true
    options.useDeterministicOrdering = true
    let url = folder.appendingPathComponent("device.json")
    try device.config.jsonUTF8Data(options: options).write(to: url)
    report.add("JSON", String(decoding: try Data(contentsOf: url), as: UTF8.self))
    report.check(try DeviceConfig(jsonUTF8Data: Data(contentsOf: url)) == device.config, "the file is read again")
    for json in [
        #"{"deviceId": "a", "colour": 1}"#, #"{"deviceId": "a", "powerMode": "POWER_MODE_TURBO"}"#,
        #"{"deviceId": "a", "revision": "#,
    ] {
        do {
            _ = try DeviceConfig(jsonString: json)
            report.check(false, "\(json) is refused")
        } catch {
            report.add("JSON", reason(for: error))
        }
    }
    var lenient = JSONDecodingOptions()
    lenient.ignoreUnknownFields = true
    let read = try DeviceConfig(jsonString: #"{"deviceId": "a", "colour": 1, "revision": 7}"#, options: lenient)
    report.check(read.hasRevision && read.revision == 7, "unknown fields can be passed over")

    try reportIncomplete(device, &report)

    report.add("History", "\(device.history.count) configurations, \(device.history.map(\.count)) bytes")
    for _ in 0..<4 { try device.rollBack() }
    report.add("Rolled back", device.config.lines)
}

private func reportIncomplete(_ device: Device, _ report: inout Report) throws {
    var incomplete = device.config
    incomplete.clearDeviceID()
    report.check(!incomplete.isInitialized, "a configuration without an id is incomplete")
    do {
        _ = try incomplete.serializedData()
        report.check(false, "what is incomplete is not written")
    } catch {
        report.add("Without an id", reason(for: error))
    }
    do {
        _ = try DeviceConfig(serializedBytes: incomplete.serializedData(partial: true))
        report.check(false, "what is incomplete is not read")
    } catch {
        report.add("Without an id", reason(for: error))
    }
    incomplete.network = Network()
    report.check(incomplete.hasNetwork && !incomplete.network.isInitialized, "an empty network is incomplete")
    incomplete.clearNetwork()
    incomplete.deviceID = "spare"
    report.check(incomplete.isInitialized, "without a network it is complete")

    // Older firmware changes what it knows, and keeps the rest.
    var minimal = try MinimalConfig(serializedData: device.config.serializedData())
    minimal.revision = 100
    let config = try DeviceConfig(serializedData: minimal.serializedData())
    report.check(config.revision == 100 && config.labels == device.config.labels, "older firmware loses nothing")
    report.add("Kept by older firmware", "\(minimal.unknownFields.data.count) bytes")

    // A closed enum leaves a number that it does not have to the unknown fields.
    let future = try DeviceConfig(serializedBytes: Data([0x0a, 1, 0x61, 0x20, 9]))
    report.check(!future.hasPowerMode && future.powerMode == .balanced, "an unknown mode is absent")
    report.add("Unknown mode", "\(future.unknownFields.data.hex) \(PowerMode(rawValue: 9) == nil)")
    report.check(try future.serializedData() == Data([0x0a, 1, 0x61, 0x20, 9]), "an unknown mode is written again")
}
