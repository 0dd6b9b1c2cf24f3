// The ledger and the prefix map of the KV ring, on tiny pools, one property a test; then random operations against a
// plain model of both.
#include "engine/kv_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace engine;

namespace {

// Tokens of `n` whole blocks and one more; every block but the first depends on `key`.
std::vector<TokenId> prompt(uint32_t n, TokenId key = 0) {
    std::vector<TokenId> tokens(size_t{n} * block_tokens + 1);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i) + (i >= block_tokens ? 10'000 * key : 0);
    return tokens;
}

std::span<const TokenId> block_of(const std::vector<TokenId>& tokens, size_t i) {
    return std::span(tokens).subspan(i * block_tokens, block_tokens);
}

// A sequence as the scheduler would keep it.
struct Holder {
    std::vector<BlockIndex> table;
    uint32_t reserved = 0;
    uint64_t prefix_id = 0;
    uint32_t registered = 0;
};

PrefixHit match(const KvRing& ring, const std::vector<TokenId>& tokens, std::vector<BlockIndex>& out, uint64_t salt = 0) {
    out.assign(tokens.size() / block_tokens + 1, 0);
    const PrefixHit hit = ring.match(tokens, salt, out);
    out.resize(hit.n_blocks);
    return hit;
}

Holder admit(KvRing& ring, const std::vector<TokenId>& tokens, uint32_t blocks, uint64_t salt = 0) {
    Holder h;
    const PrefixHit hit = match(ring, tokens, h.table, salt);
    ring.admit(blocks, h.table);
    h.reserved = blocks - hit.n_blocks;
    h.prefix_id = hit.prefix_id;
    h.registered = hit.n_blocks;
    return h;
}

void grow(KvRing& ring, Holder& h) {
    h.table.push_back(ring.allocate());
    h.reserved -= 1;
}

void compute_all(KvRing& ring, Holder& h, const std::vector<TokenId>& tokens, uint64_t salt = 0) {
    for (; h.registered < tokens.size() / block_tokens; ++h.registered) {
        if (h.table.size() == h.registered) grow(ring, h);
        h.prefix_id = ring.register_block(h.table[h.registered], h.prefix_id, block_of(tokens, h.registered), salt);
    }
}

void release(KvRing& ring, Holder& h) {
    ring.release(h.table, h.reserved);
    h = {};
}

}  // namespace

TEST(KvRing, WhatIsReservedCanAlwaysBeTaken) {
    KvRing ring(4);
    Holder a = admit(ring, prompt(2), 3);
    EXPECT_EQ(ring.available(), 1u);
    EXPECT_FALSE(ring.fits(2));
    EXPECT_TRUE(ring.fits(1));
    Holder b = admit(ring, prompt(0, 7), 1);
    EXPECT_EQ(ring.available(), 0u);
    for (int i = 0; i < 3; ++i) grow(ring, a);
    grow(ring, b);
    EXPECT_EQ(ring.pinned(), 4u);
    EXPECT_EQ(ring.reserved(), 0u);
    ring.check_integrity();
    release(ring, a);
    release(ring, b);
    EXPECT_EQ(ring.available(), 4u);
    ring.check_integrity();
}

TEST(KvRing, APrefixIsFoundAfterItsSequenceHasEnded) {
    KvRing ring(8);
    const auto tokens = prompt(3);
    Holder a = admit(ring, tokens, 4);
    compute_all(ring, a, tokens);
    const std::vector<BlockIndex> table = a.table;
    release(ring, a);
    EXPECT_EQ(ring.cached(), 3u);
    std::vector<BlockIndex> hits;
    const PrefixHit hit = match(ring, tokens, hits);
    EXPECT_EQ(hit.n_blocks, 3u);
    EXPECT_EQ(hit.n_pinned, 0u);
    EXPECT_TRUE(std::equal(hits.begin(), hits.end(), table.begin()));
    ring.check_integrity();
}

TEST(KvRing, TheLastTokenIsNeverAHit) {
    KvRing ring(8);
    auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 3);
    compute_all(ring, a, tokens);
    release(ring, a);
    std::vector<BlockIndex> hits;
    tokens.pop_back();  // exactly two blocks: the second one's last token must be computed
    EXPECT_EQ(match(ring, tokens, hits).n_blocks, 1u);
    tokens.resize(block_tokens);
    EXPECT_EQ(match(ring, tokens, hits).n_blocks, 0u);
    EXPECT_EQ(match(ring, {}, hits).n_blocks, 0u);
}

TEST(KvRing, APrefixStaysInsideItsSalt) {
    KvRing ring(8);
    const auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 3, 1);
    compute_all(ring, a, tokens, 1);
    release(ring, a);
    std::vector<BlockIndex> hits;
    EXPECT_EQ(match(ring, tokens, hits, 1).n_blocks, 2u);
    EXPECT_EQ(match(ring, tokens, hits, 2).n_blocks, 0u);
    EXPECT_EQ(match(ring, tokens, hits, 0).n_blocks, 0u);
}

TEST(KvRing, SameTokensAfterAnotherBeginningAreAnotherPrefix) {
    KvRing ring(8);
    const auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 3);
    compute_all(ring, a, tokens);
    release(ring, a);
    // Block 1 of the first prompt, in the second place again, but the first block differs in one token.
    auto other = tokens;
    other[3] += 1;
    std::vector<BlockIndex> hits;
    EXPECT_EQ(match(ring, other, hits).n_blocks, 0u);
    // And as a first block.
    const std::vector<TokenId> second(tokens.begin() + block_tokens, tokens.end());
    EXPECT_EQ(match(ring, second, hits).n_blocks, 0u);
}

TEST(KvRing, AHitOnAnIdleBlockCostsABlockAndOnAPinnedOneNothing) {
    KvRing ring(6);
    const auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 3);
    compute_all(ring, a, tokens);
    std::vector<BlockIndex> hits;
    EXPECT_EQ(KvRing::cost(3, match(ring, tokens, hits)), 1u);  // both hits are pinned by a
    release(ring, a);
    EXPECT_EQ(KvRing::cost(3, match(ring, tokens, hits)), 3u);
    Holder b = admit(ring, tokens, 3);
    EXPECT_EQ(ring.available(), 3u);
    release(ring, b);
    ring.check_integrity();
}

TEST(KvRing, TheLastBlockOfASequenceIsRecycledFirst) {
    KvRing ring(4);
    const auto tokens = prompt(3);
    Holder a = admit(ring, tokens, 4);
    compute_all(ring, a, tokens);
    grow(ring, a);  // the partial block
    release(ring, a);
    std::vector<BlockIndex> hits;
    Holder b = admit(ring, prompt(0, 9), 1);
    grow(ring, b);  // takes the partial block, which holds no prefix
    EXPECT_EQ(match(ring, tokens, hits).n_blocks, 3u);
    Holder c = admit(ring, prompt(0, 9), 1);
    grow(ring, c);
    EXPECT_EQ(match(ring, tokens, hits).n_blocks, 2u);
    release(ring, b);
    release(ring, c);
    ring.check_integrity();
}

TEST(KvRing, TheLeastRecentlyUsedPrefixGoesFirst) {
    KvRing ring(4);
    const auto a_tokens = prompt(1), b_tokens = std::vector<TokenId>(block_tokens + 1, 5);
    Holder a = admit(ring, a_tokens, 2);
    compute_all(ring, a, a_tokens);
    Holder b = admit(ring, b_tokens, 2);
    compute_all(ring, b, b_tokens);
    release(ring, a);
    release(ring, b);
    Holder again = admit(ring, a_tokens, 2);  // used again: b is now the older one
    release(ring, again);
    Holder c = admit(ring, prompt(0, 9), 3);
    for (int i = 0; i < 3; ++i) grow(ring, c);
    std::vector<BlockIndex> hits;
    EXPECT_EQ(match(ring, a_tokens, hits).n_blocks, 1u);
    EXPECT_EQ(match(ring, b_tokens, hits).n_blocks, 0u);
    release(ring, c);
}

TEST(KvRing, APinnedBlockIsNeverRecycled) {
    KvRing ring(4);
    const auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 2);
    compute_all(ring, a, tokens);
    Holder b = admit(ring, prompt(0, 9), 2);
    grow(ring, b);
    grow(ring, b);
    for (const BlockIndex block : b.table) EXPECT_EQ(std::ranges::count(a.table, block), 0);
    ring.check_integrity();
}

TEST(KvRing, TwoThatComputeTheSamePrefixKeepTheirOwnBlocksAndOneName) {
    KvRing ring(8);
    const auto tokens = prompt(2);
    Holder a = admit(ring, tokens, 3), b = admit(ring, tokens, 3);
    compute_all(ring, a, tokens);
    compute_all(ring, b, tokens);
    EXPECT_EQ(a.prefix_id, b.prefix_id);
    EXPECT_NE(a.table[0], b.table[0]);
    ring.check_integrity();
    release(ring, b);
    release(ring, a);
    EXPECT_EQ(ring.cached(), 2u);
    ring.check_integrity();
}

TEST(KvRing, AnIdleCopyGivesItsNameToTheOneInUse) {
    KvRing ring(3);
    auto tokens = prompt(1);
    Holder a = admit(ring, tokens, 1);
    compute_all(ring, a, tokens);
    release(ring, a);
    tokens.pop_back();  // no hit now: the block is computed once more
    Holder b = admit(ring, tokens, 1);
    compute_all(ring, b, tokens);
    EXPECT_EQ(ring.cached(), 0u);  // the old copy holds nothing any more
    ring.check_integrity();
    tokens.push_back(1);
    std::vector<BlockIndex> hits;
    EXPECT_EQ(match(ring, tokens, hits).n_blocks, 1u);
    EXPECT_EQ(hits[0], b.table[0]);
    release(ring, b);
    ring.check_integrity();
}

TEST(KvRing, ASharedBlockIsFreeWhenItsLastHolderGoes) {
    KvRing ring(4);
    const auto tokens = prompt(1);
    Holder a = admit(ring, tokens, 2);
    compute_all(ring, a, tokens);
    Holder fork;
    ring.share(a.table[0]);
    fork.table = {a.table[0]};
    release(ring, a);
    EXPECT_EQ(ring.pinned(), 1u);
    release(ring, fork);
    EXPECT_EQ(ring.pinned(), 0u);
    ring.check_integrity();
}

// Every bucket chain has many blocks when all hashes agree; tokens are compared, so nothing else changes. A hash of
// equal value can't be forced from outside, so this fills a ring until chains must be shared.
TEST(KvRing, ManyPrefixesNeverMixUp) {
    KvRing ring(512, 42);
    std::vector<std::vector<TokenId>> prompts;
    for (TokenId key = 0; key < 512; ++key) {
        std::vector<TokenId> tokens(block_tokens + 1, 0);
        tokens[0] = key;
        prompts.push_back(tokens);
        Holder h = admit(ring, tokens, 1);
        compute_all(ring, h, tokens);
        release(ring, h);
    }
    ring.check_integrity();
    std::vector<BlockIndex> hits, seen;
    for (const auto& tokens : prompts) {
        ASSERT_EQ(match(ring, tokens, hits).n_blocks, 1u);
        seen.push_back(hits[0]);
    }
    std::ranges::sort(seen);
    EXPECT_EQ(std::ranges::unique(seen).size(), 0u);
}

TEST(KvRing, RandomOperationsKeepTheLedgerAndServeOnlyTrueHits) {
    const int runs = std::getenv("HEARTH_VERIFY") != nullptr ? 2'000 : 60;
    uint64_t n_hits = 0, n_refused = 0, n_evicted = 0;
    for (int seed = 0; seed < runs; ++seed) {
        std::mt19937_64 random(static_cast<uint64_t>(seed));
        const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
        const uint32_t total = 4 + pick(20);
        KvRing ring(total, random());
        struct Live {
            Holder h;
            std::vector<TokenId> tokens;
            uint64_t salt;
        };
        std::vector<Live> live;
        std::map<BlockIndex, std::vector<TokenId>> contents;  // what was last computed into a block, with its whole prefix
        for (int i = 0; i < 400; ++i) {
            const uint32_t what = pick(10);
            if (what < 4) {
                Live l;
                l.tokens = prompt(pick(4), static_cast<TokenId>(pick(3)));
                l.tokens.resize(l.tokens.size() - pick(2));
                l.salt = pick(2);
                if (l.tokens.empty()) continue;
                const uint32_t blocks = blocks_for(l.tokens.size()) + pick(3);
                std::vector<BlockIndex> hits;
                const PrefixHit hit = match(ring, l.tokens, hits, l.salt);
                for (uint32_t b = 0; b < hit.n_blocks; ++b) {
                    std::vector<TokenId> want(l.tokens.begin(), l.tokens.begin() + (b + 1) * block_tokens);
                    want.push_back(static_cast<TokenId>(l.salt));
                    ASSERT_EQ(contents[hits[b]], want) << "seed " << seed << " operation " << i;
                }
                n_hits += hit.n_blocks;
                if (!ring.fits(KvRing::cost(blocks, hit))) {
                    n_refused += 1;
                    continue;
                }
                l.h = admit(ring, l.tokens, blocks, l.salt);
                live.push_back(std::move(l));
            } else if (what < 7 && !live.empty()) {
                Live& l = live[pick(static_cast<uint32_t>(live.size()))];
                if (l.h.reserved > 0) {
                    const uint32_t cached = ring.cached();
                    grow(ring, l.h);
                    n_evicted += ring.cached() < cached;
                    contents.erase(l.h.table.back());
                }
                if (l.h.registered < std::min(l.h.table.size(), l.tokens.size() / block_tokens)) {
                    const uint32_t at = l.h.registered++;
                    std::vector<TokenId> whole(l.tokens.begin(), l.tokens.begin() + (at + 1) * block_tokens);
                    whole.push_back(static_cast<TokenId>(l.salt));
                    contents[l.h.table[at]] = whole;
                    l.h.prefix_id = ring.register_block(l.h.table[at], l.h.prefix_id, block_of(l.tokens, at), l.salt);
                }
            } else if (what == 7 && !live.empty()) {  // fork
                Live l = live[pick(static_cast<uint32_t>(live.size()))];
                for (const BlockIndex b : l.h.table) ring.share(b);
                l.h.reserved = 0;
                live.push_back(std::move(l));
            } else if (!live.empty()) {  // end or abort
                const uint32_t at = pick(static_cast<uint32_t>(live.size()));
                release(ring, live[at].h);
                live.erase(live.begin() + at);
            }
            ring.check_integrity();
            uint32_t reserved = 0;
            std::map<BlockIndex, uint32_t> refs;
            for (const Live& l : live) {
                reserved += l.h.reserved;
                for (const BlockIndex b : l.h.table) refs[b] += 1;
            }
            ASSERT_EQ(ring.reserved(), reserved);
            ASSERT_EQ(ring.pinned(), refs.size());
            for (const auto& [b, n] : refs) ASSERT_EQ(ring.ref_count(b), n);
        }
        for (Live& l : live) release(ring, l.h);
        ASSERT_EQ(ring.pinned(), 0u);
        ASSERT_EQ(ring.reserved(), 0u);
        ring.check_integrity();
    }
    EXPECT_GT(n_hits, 100u);
    EXPECT_GT(n_refused, 100u);
    EXPECT_GT(n_evicted, 100u);
}

using KvRingDeathTest = testing::Test;

TEST(KvRingDeathTest, TakingMoreThanWasReservedIsABrokenInvariant) {
    KvRing ring(2);
    Holder a = admit(ring, prompt(0), 1);
    grow(ring, a);
    EXPECT_DEATH(ring.allocate(), "invariant broken");
}

TEST(KvRingDeathTest, ReleasingTwiceIsABrokenInvariant) {
    KvRing ring(2);
    Holder a = admit(ring, prompt(0), 1);
    grow(ring, a);
    const auto table = a.table;
    release(ring, a);
    EXPECT_DEATH(ring.release(table, 0), "invariant broken");
}
