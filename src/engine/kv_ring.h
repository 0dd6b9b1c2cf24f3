// The KV ring: a fixed number of blocks of 64 tokens, and the ledger that says who may still take how many.
//
//     pinned + reserved <= total        (pinned: blocks with ref_count > 0; reserved: sum over sequences of the
//                                        blocks they may still take before they end)
//
// Admission is the only act that raises the left side, and it is refused when it would break the line; allocate()
// moves one from reserved to pinned. So an allocation cannot fail, and what has been admitted can finish.
// "Ring" is the order in which unpinned blocks are recycled: an intrusive list, popped at the head; finished blocks go
// to its tail, the last block of a sequence first, so that the least shareable one is recycled first.
//
// A full block may keep its content after its sequence has ended, as a cached prefix. A prefix is named by an id that
// stands for exactly one (salt, token sequence): id(block) is found by (id of the block before, 64 tokens, salt), and
// all three are compared on a hit. The hash only finds the bucket, so a collision costs time and never a wrong answer.
//
// One thread (the engine's). All memory is taken at construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/limits.h"
#include "model/batch.h"

namespace engine {

using model::BlockIndex;
using model::TokenId;

inline constexpr uint32_t block_tokens = limits::kv_block_tokens;
// Blocks that hold `n_tokens` positions.
constexpr uint32_t blocks_for(uint64_t n_tokens) { return static_cast<uint32_t>((n_tokens + block_tokens - 1) / block_tokens); }

// What match() found: the first n_blocks blocks of a prompt.
struct PrefixHit {
    uint32_t n_blocks = 0;
    uint32_t n_pinned = 0;   // of them, already held by a running sequence: they cost the ledger nothing
    uint64_t prefix_id = 0;  // of the last of them; 0 when there is none
};

class KvRing {
  public:
    // hash_seed: any value; keeps the buckets of the prefix map from being guessed.
    explicit KvRing(uint32_t blocks_count, uint64_t hash_seed = 0);

    uint32_t total() const { return total_; }
    uint32_t pinned() const { return total_ - free_count_; }
    uint32_t reserved() const { return reserved_; }
    uint32_t available() const { return free_count_ - reserved_; }  // blocks that a new admission may ask for
    uint32_t cached() const { return cached_count_; }               // unpinned blocks that hold a prefix
    uint32_t ref_count(BlockIndex block) const { return ref_count_[block]; }

    // --- prefix reuse ---
    // The longest run of cached full blocks that begins `tokens`, over at most tokens.size() - 1 of them (the last
    // token must be computed for its logits). Writes the blocks to out[0, n_blocks); out holds tokens.size() / 64.
    PrefixHit match(std::span<const TokenId> tokens, uint64_t salt, std::span<BlockIndex> out) const;
    // `block` (pinned by the caller) now holds these 64 tokens, computed, after the prefix `parent_id` (0: it is the
    // first). Returns the id of the prefix that ends with it. A prefix is in the map once: when another pinned block
    // stands for it, this one stays a private copy; when an idle one does, this one takes its place.
    uint64_t register_block(BlockIndex block, uint64_t parent_id, std::span<const TokenId> tokens, uint64_t salt);

    // --- the ledger ---
    // Blocks that admitting `blocks_needed` (hits included) would add to pinned + reserved.
    static uint32_t cost(uint32_t blocks_needed, const PrefixHit& hit) { return blocks_needed - hit.n_pinned; }
    bool fits(uint32_t cost_blocks) const { return cost_blocks <= available(); }
    // Pins the hits and reserves the rest of blocks_needed. CHECKs that it fits.
    void admit(uint32_t blocks_needed, std::span<const BlockIndex> hits);
    // Takes a block: one of `reserved` becomes pinned. Recycles the head of the ring.
    BlockIndex allocate();
    // One more holder of a pinned block (a further choice of the same prompt).
    void share(BlockIndex block);
    // Gives back a sequence's blocks (in table order) and what it had still reserved.
    void release(std::span<const BlockIndex> table, uint32_t reserved_left);

    // Every invariant of this class; aborts with values on a breach. O(total).
    void check_integrity() const;

  private:
    static constexpr uint32_t none = 0xffff'ffff;

    std::span<const TokenId> block_contents(BlockIndex block) const {
        return {tokens_.data() + size_t{block} * block_tokens, block_tokens};
    }
    uint64_t hash(uint64_t parent_id, std::span<const TokenId> tokens, uint64_t salt) const;
    BlockIndex find(uint64_t parent_id, std::span<const TokenId> tokens, uint64_t salt) const;  // `none` when absent
    void forget(BlockIndex block);                                                              // leaves the prefix map
    void unlink(BlockIndex block);
    void pin(BlockIndex block);
    void unpin(BlockIndex block);
    void put_back(BlockIndex block);  // into the list of unpinned blocks

    const uint32_t total_;
    const uint64_t hash_seed_;
    uint32_t reserved_ = 0;
    uint64_t next_prefix_id_ = 1;  // never reused: an id whose block was recycled names nothing any more

    std::vector<uint32_t> ref_count_;  // (total)

    // Unpinned blocks, doubly linked; block `total_` is the sentinel.
    std::vector<BlockIndex> next_, prev_;  // (total + 1)
    uint32_t free_count_ = 0, cached_count_ = 0;

    // The prefix map: chained buckets. prefix_id_ != 0 says that a block is in it.
    std::vector<uint64_t> prefix_id_, parent_id_, salt_;  // (total)
    std::vector<TokenId> tokens_;                         // (total, 64): contents of blocks in the map
    std::vector<BlockIndex> chain_next_;                  // (total)
    std::vector<BlockIndex> buckets_;                     // (power of two >= 2 total)
};

}  // namespace engine
