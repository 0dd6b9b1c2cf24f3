// A request as the engine's state: RequestState, and a Sequence for each of its choices (`n`; mostly one).
// Built by submit() on the caller's thread with every buffer at its final capacity, so that the engine's thread only
// fills what is there. From then on only the engine's thread touches it, except the fields under "inbox".
#pragma once

#include <cstdint>
#include <vector>

#include "engine/event.h"
#include "engine/kv_ring.h"
#include "engine/request.h"
#include "engine/text_stream.h"
#include "engine/token_counts.h"

namespace engine {

struct RequestState;

enum class SequenceState : uint8_t {
    waiting,  // its request is not admitted
    joining,  // a further choice; waits for the first one to have computed the prompt
    running,
    ended,    // holds nothing any more
};

struct Sequence {
    RequestState* request = nullptr;
    uint32_t choice = 0;
    SequenceState state = SequenceState::waiting;

    std::vector<TokenId> tokens;           // the prompt, then what was generated
    std::vector<BlockIndex> block_table;   // block i holds positions [64 i, 64 i + 64); only ever appended to
    uint32_t n_prompt = 0;                 // tokens[0, n_prompt) are the prompt
    uint32_t n_computed = 0;               // positions [0, n_computed) are in the KV
    uint32_t reserved_blocks = 0;          // it may still take these: its share of KvRing::reserved()
    uint32_t n_registered = 0;             // blocks [0, n_registered) are entered as prefixes, the last one as prefix_id
    uint64_t prefix_id = 0;
    bool may_sample = false;               // in the step being scheduled: a token's events have room

    TextStream text;
    TokenCounts counts;
    int64_t last_token_ns = 0;
    FinishReason finish = FinishReason::none;  // as reported; none: not yet

    uint32_t n_generated() const { return static_cast<uint32_t>(tokens.size()) - n_prompt; }
    uint32_t n_uncomputed() const { return static_cast<uint32_t>(tokens.size()) - n_computed; }
    // Only the newest token is to be computed, and it is a generated one.
    bool is_decoding() const { return n_computed >= n_prompt && n_uncomputed() == 1; }
};

struct RequestState {
    Request request;               // its `tokens` and `stop` have moved into the members below
    StopStrings stops;
    std::vector<Sequence> choices;
    uint32_t n_prompt = 0;
    uint32_t blocks_first = 0;     // blocks of choice 0 from beginning to end
    uint32_t blocks_further = 0;   // of each further choice, which shares the full blocks of the prompt
    uint32_t blocks_total() const { return blocks_first + blocks_further * (static_cast<uint32_t>(choices.size()) - 1); }

    // --- scheduler ---
    RequestState* prev = nullptr;  // the waiting queue
    RequestState* next = nullptr;
    bool is_waiting = false;
    bool paused = false;           // takes no part in steps
    uint32_t n_open = 0;           // choices that have not ended
    uint32_t times_passed = 0;     // later requests admitted while this one waited for blocks
    int64_t blocked_since_ns = -1; // first time that it did not fit; -1: never
    uint32_t n_cached = 0;         // prompt tokens taken from the prefix cache

    // --- engine ---
    int64_t submitted_ns = 0, scheduled_ns = -1, first_token_ns = -1;
    uint32_t n_reported = 0;                      // choices whose end has been written to the event ring
    FinishReason worst_end = FinishReason::none;  // of those
    RequestState* owed_next = nullptr;            // ended, and the event ring had no room to say so
    bool is_owed = false;

    bool cancelled = false;
    RequestState* taken_next = nullptr;           // list of those whose flags changed

    // --- inbox, under its mutex ---
    RequestState* inbox_next = nullptr;
    RequestState* flagged_next = nullptr;
    bool is_flagged = false, cancel_wanted = false, pause_wanted = false;
    bool counted_waiting = false;  // as opposed to: sure to be admitted by the next step
    bool in_inbox = false;
    size_t held_bytes = 0;         // of Inbox::hold
};

}  // namespace engine
