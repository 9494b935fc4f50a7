// A small seeded generator: the same seed gives the same inputs on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace differential {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    uint64_t next() {
        uint64_t mixed = state_ += 0x9E3779B97F4A7C15;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
        return mixed ^ (mixed >> 31);
    }

    // 0 up to but not including `limit`, which must not be 0. (The bias of the remainder does not matter here.)
    size_t below(size_t limit) { return static_cast<size_t>(next() % limit); }

    // True once in `times`.
    bool one_in(size_t times) { return below(times) == 0; }

private:
    uint64_t state_;
};

}  // namespace differential
