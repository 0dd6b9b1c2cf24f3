#include "tests/engine/plain_answer.h"

#include "base/utf8.h"
#include "engine/sampler.h"

namespace engine_test {

using namespace engine;

namespace {

// The text of these bytes; while more may come, without an unfinished character at the end.
std::string decoded(const std::string& bytes, bool more_may_come) {
    std::string out;
    for (size_t at = 0; at < bytes.size();) {
        const auto c = base::utf8::decode(bytes, at);
        if (c.cut && more_may_come) break;
        out += c.valid ? bytes.substr(at, c.length) : "\xEF\xBF\xBD";
        at += c.length;
    }
    return out;
}

}  // namespace

PlainAnswer plain_answer(const support::FakeModel& model, const support::FakeTokenizer& tokenizer, const Request& request, uint32_t choice) {
    PlainAnswer answer;
    Sampler sampler(model.n_vocab());
    std::vector<TokenId> history = request.tokens;
    std::string bytes;
    size_t stops_from = 0;  // the text of the first min_tokens tokens takes no part in a match
    const auto find_stop = [&](const std::string& text) {
        size_t best_end = std::string::npos;
        for (size_t i = 0; i < request.stop.size(); ++i) {
            const size_t at = text.find(request.stop[i], stops_from);
            if (at == std::string::npos) continue;
            const size_t end = at + request.stop[i].size();
            const bool longer = answer.stop_index >= 0 && request.stop[i].size() > request.stop[static_cast<size_t>(answer.stop_index)].size();
            if (end < best_end || (end == best_end && longer)) {
                best_end = end;
                answer.stop_index = static_cast<int32_t>(i);
            }
        }
        if (answer.stop_index < 0) return false;
        answer.text = text.substr(0, best_end - request.stop[static_cast<size_t>(answer.stop_index)].size());
        answer.finish = FinishReason::stop;
        return true;
    };
    while (true) {
        TokenCounts counts(history.size(), request.sampling.repetition_last_n);
        for (size_t i = 1; i <= history.size(); ++i) counts.add({history.data(), i}, i > request.tokens.size());
        SampleInput in;
        const std::vector<float> logits = model.logits_for(history);
        in.logits = logits;
        in.params = &request.sampling;
        in.counts = &counts;
        if (request.ignore_eos || answer.tokens.size() < request.min_tokens) in.banned = tokenizer.end_of_generation_ids();
        in.choice = choice;
        in.position = static_cast<uint32_t>(answer.tokens.size());
        const TokenId token = sampler.sample(in);
        if (token < 0) {
            answer.finish = FinishReason::error;
            return answer;  // what was held back at that moment is not shown, so `text` is not the measure
        }
        answer.tokens.push_back(token);
        history.push_back(token);
        const bool ends = tokenizer.is_end_of_generation(token);
        if (tokenizer.token_kind(token) != text::TokenKind::control) bytes += tokenizer.token_bytes(token);
        if (answer.tokens.size() <= request.min_tokens) {
            stops_from = decoded(bytes, true).size();
        } else if (find_stop(decoded(bytes, true))) {
            return answer;
        }
        if (ends || answer.tokens.size() == request.max_tokens) {
            answer.finish = ends ? FinishReason::stop : FinishReason::length;
            answer.text = decoded(bytes, false);
            if (answer.tokens.size() > request.min_tokens) find_stop(answer.text);
            return answer;
        }
    }
}

}  // namespace engine_test
