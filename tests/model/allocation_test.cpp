// A step of the model allocates nothing, on any of its threads: counted by the global operator new of this program.
#include <gtest/gtest.h>

#include "running.h"
#include "support/allocation_counter.h"
#include "support/model_builder.h"

TEST(ModelAllocation, TheCounterCounts) {
    // A new-expression may be left out by the compiler.
    EXPECT_EQ(support::allocations_of([] { ::operator delete(::operator new(1)); }), 1u);
}

// Decode, prefill, both in one step, and steps that want no logits; the first step counts too: loading allocates everything.
TEST(ModelAllocation, NoStepAllocates) {
    for (const quant::Type type : {quant::Type::f32, quant::Type::q4_1, quant::Type::q6_k}) {
        const std::vector<std::byte> image = support::build_model(support::spec_for(type));
        auto file = gguf::File::parse(image, "tiny");
        ASSERT_TRUE(file.ok()) << file.error().message;
        const auto model = model_test::load(file.value(), 512);
        ASSERT_TRUE(model);
        const std::vector<model::BlockIndex> first_blocks{0, 1}, second_blocks{2, 3, 4, 5, 6, 7};
        const std::vector<int32_t> tokens = model_test::some_tokens(8, model->n_vocab());
        for (uint32_t step = 0; step < 50; ++step) {
            const uint32_t more = step % 3 * 3;  // rows of the second sequence: 0, 3 or 6
            const uint32_t second_start = step / 3 * 9 + (step % 3 == 2 ? 3 : 0);
            const model::SequenceSlice slices[] = {{0, 1, step, first_blocks}, {1, more, second_start, second_blocks}};
            const uint32_t rows[] = {0, more};
            const size_t wanted = step % 4 == 3 ? 0 : more > 0 ? 2 : 1;
            const model::Batch batch{std::span(tokens).first(1 + more), std::span(slices).first(more > 0 ? 2 : 1), std::span(rows).first(wanted)};
            model::Logits logits;
            EXPECT_EQ(support::allocations_of([&] { logits = model->forward(batch); }), 0u) << quant::info(type).name << ", step " << step;
            EXPECT_EQ(logits.n_rows, wanted);
        }
    }
}
