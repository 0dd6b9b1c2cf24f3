// A step of the model allocates nothing, on any of its threads: counted by the global operator new of this program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "running.h"
#include "support/model_builder.h"

// Inlining shows GCC a malloc in new and a free in delete, which is the point here.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace {

std::atomic<bool> counting = false;
std::atomic<uint64_t> allocations = 0;

void* counted(size_t size, size_t alignment) noexcept {
    if (counting) ++allocations;
    if (alignment > alignof(std::max_align_t)) return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    return std::malloc(size == 0 ? 1 : size);
}

void* counted_or_throw(size_t size, size_t alignment) {
    void* p = counted(size, alignment);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}

}  // namespace

void* operator new(size_t size) { return counted_or_throw(size, 0); }
void* operator new[](size_t size) { return counted_or_throw(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment) { return counted_or_throw(size, static_cast<size_t>(alignment)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept { return counted(size, static_cast<size_t>(alignment)); }
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept { return counted(size, static_cast<size_t>(alignment)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

TEST(ModelAllocation, TheCounterCounts) {
    allocations = 0;
    counting = true;
    delete new int(1);
    counting = false;
    EXPECT_EQ(allocations.load(), 1u);
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
            allocations = 0;
            counting = true;
            const model::Logits logits = model->forward(batch);
            counting = false;
            EXPECT_EQ(allocations.load(), 0u) << quant::info(type).name << ", step " << step;
            EXPECT_EQ(logits.n_rows, wanted);
        }
    }
}
