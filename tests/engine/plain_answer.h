// What a request must get, worked out from its tokens alone: no engine, no blocks, no batch, whole texts searched anew
// at every token.
#pragma once

#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/event.h"
#include "tests/support/fake_model.h"
#include "tests/support/fake_tokenizer.h"

namespace engine_test {

struct PlainAnswer {
    std::vector<engine::TokenId> tokens;
    std::string text;
    engine::FinishReason finish = engine::FinishReason::none;
    int32_t stop_index = -1;
};

PlainAnswer plain_answer(const support::FakeModel& model, const support::FakeTokenizer& tokenizer, const engine::Request& request,
                         uint32_t choice);

}  // namespace engine_test
