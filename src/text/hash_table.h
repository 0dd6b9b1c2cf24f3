// An open-addressing table from 64-bit keys to small values, for tables that are filled once from a file that may be
// hostile. A file made to collide can't make filling quadratic: when a probe grows long the table takes another seed,
// a few times in its life; after that add() says `crowded`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace text {

// Finalizer of MurmurHash3 (public domain, Austin Appleby): each input bit flips each output bit with probability 1/2.
inline uint64_t mix_bits(uint64_t x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

template <typename T>
class HashTable {
  public:
    // Room for `count` keys at most half full.
    void reserve(size_t count) {
        size_t size = 16;
        while (size < 2 * count) size *= 2;
        slots_.assign(size, Slot{});
    }

    enum class Added { yes, duplicate, crowded };
    // `same(value)` tells whether a stored value with an equal key is the same thing (for keys that are hashes).
    template <typename Same>
    Added add(uint64_t key, const T& value, Same&& same) {
        for (;;) {
            const Added result = try_add(stored(key), value, same);
            if (result != Added::crowded || reseeds_ == reseeds_max) return result;
            reseed();
        }
    }
    Added add(uint64_t key, const T& value) {
        return add(key, value, [](const T&) { return true; });
    }

    template <typename Same>
    const T* find(uint64_t key, Same&& same) const {
        key = stored(key);
        const size_t mask = slots_.size() - 1;
        for (size_t i = mix_bits(key ^ seed_) & mask; slots_[i].key != empty; i = (i + 1) & mask) {
            if (slots_[i].key == key && same(slots_[i].value)) return &slots_[i].value;
        }
        return nullptr;
    }
    const T* find(uint64_t key) const {
        return find(key, [](const T&) { return true; });
    }

  private:
    static constexpr uint64_t empty = ~uint64_t{0};
    struct Slot {
        uint64_t key = empty;
        T value{};
    };
    static constexpr size_t probes_max = 256;  // at half load and with good mixing a run of 100 is already not to be seen
    static constexpr int reseeds_max = 4;      // in the life of a table

    static uint64_t stored(uint64_t key) { return key == empty ? 0 : key; }

    template <typename Same>
    Added try_add(uint64_t key, const T& value, Same& same) {
        const size_t mask = slots_.size() - 1;
        size_t i = mix_bits(key ^ seed_) & mask;
        for (size_t probes = 0; probes < probes_max; ++probes, i = (i + 1) & mask) {
            if (slots_[i].key == empty) {
                slots_[i] = {key, value};
                return Added::yes;
            }
            if (slots_[i].key == key && same(slots_[i].value)) return Added::duplicate;
        }
        return Added::crowded;
    }

    // Moves every entry to its place under the next seed; long probes are allowed here, add() judges afterwards.
    void reseed() {
        ++reseeds_;
        seed_ = mix_bits(seed_ + 0x9e3779b97f4a7c15ULL);
        std::vector<Slot> old(slots_.size());
        old.swap(slots_);
        const size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (slot.key == empty) continue;
            size_t i = mix_bits(slot.key ^ seed_) & mask;
            while (slots_[i].key != empty) i = (i + 1) & mask;
            slots_[i] = slot;
        }
    }

    std::vector<Slot> slots_;
    int reseeds_ = 0;
    uint64_t seed_ = 0x2545f4914f6cdd1dULL;
};

}  // namespace text
