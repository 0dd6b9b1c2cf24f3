// Checks of the tensors: which there are, and every number in them.
#include <algorithm>
#include <vector>

#include "base/message.h"
#include "commands/check.h"
#include "model/weights.h"
#include "quant/quantize.h"

namespace commands {
namespace {

using base::cat;

constexpr uint64_t chunk_bytes = 1 << 20;       // looked at, then released
constexpr uint64_t weights_at_once = 8'192;     // of a search for one that is not zero; a multiple of every block
static_assert(weights_at_once % 256 == 0);

std::string named(const gguf::TensorInfo& tensor) { return cat("tensor '", base::printable(tensor.name), "' (data at ", gguf::place(tensor), ")"); }

// Ends at the first weight that is not zero, so only a tensor of zeros is decoded as a whole.
bool all_zero(const CheckedModel& model, const gguf::TensorInfo& tensor, std::vector<float>& values) {
    const uint64_t n = tensor.n_elements();
    for (uint64_t at = 0; at < n; at += weights_at_once) {
        const uint64_t count = std::min(weights_at_once, n - at);
        const auto part = tensor.data.subspan(quant::row_bytes(tensor.type, at), quant::row_bytes(tensor.type, count));
        quant::dequantize_row(tensor.type, part.data(), values.data(), count);
        if (std::any_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count), [](float value) { return value != 0; })) return false;
        model.release(part);
    }
    return true;
}

// Rows with a block that decodes to something that is no number.
void find_not_finite(const CheckedModel& model, const gguf::TensorInfo& tensor, Findings& findings) {
    const quant::TypeInfo& type = quant::info(tensor.type);
    const uint64_t row_blocks = tensor.dims[0] / type.block_elements, n_blocks = tensor.n_elements() / type.block_elements;
    const uint64_t step = std::max<uint64_t>(1, chunk_bytes / type.block_bytes);
    uint64_t first_row = 0, first_byte = 0, bad_rows = 0, last_bad_row = UINT64_MAX;
    for (uint64_t at = 0; at < n_blocks; at += step) {
        const uint64_t count = std::min(step, n_blocks - at);
        const auto part = tensor.data.subspan(at * type.block_bytes, count * type.block_bytes);
        if (!quant::all_finite(tensor.type, part.data(), count * type.block_elements))
            for (uint64_t block = at; block < at + count; ++block) {
                const uint64_t row = block / row_blocks;
                if (row == last_bad_row || quant::all_finite(tensor.type, tensor.data.data() + block * type.block_bytes, type.block_elements)) continue;
                if (bad_rows++ == 0) {
                    first_row = row;
                    first_byte = block * type.block_bytes;
                }
                last_bad_row = row;
            }
        model.release(part);
    }
    if (bad_rows == 0) return;
    gguf::TensorInfo at = tensor;
    at.offset += first_byte;
    findings.add(Severity::error, cat("tensor '", base::printable(tensor.name), "' row ", first_row, " (", gguf::place(at), "): a NaN or infinite ",
                                      type.block_elements > 1 ? "scale" : "weight", " in a ", type.name, " block",
                                      bad_rows > 1 ? cat("; ", bad_rows, " of its ", n_blocks / row_blocks, " rows have one") : std::string()));
}

}  // namespace

void check_shapes(const CheckedModel& model, Findings& findings) {
    if (!model.config) return;
    for (const base::Error& fault : model::tensor_faults(model.file, *model.config, model.file.tensors().size() + 10 * limit_a_check))
        findings.add(Severity::error, fault.message);
}

void check_numbers(const CheckedModel& model, Findings& findings) {
    std::vector<float> values(weights_at_once);
    for (const gguf::TensorInfo& tensor : model.file.tensors()) {
        // A bias of zeros is what training without one leaves behind.
        if (!tensor.name.ends_with(".bias") && all_zero(model, tensor, values)) {
            findings.add(Severity::warning, cat(named(tensor), " has zeros only"));
            continue;
        }
        find_not_finite(model, tensor, findings);
    }
}

}  // namespace commands
