#include "commands/quantize_tensor.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "base/message.h"
#include "quant/quantize.h"

namespace commands {
namespace {

using base::cat;

// Weights of a row that one call of a codec takes: a multiple of every block, small enough for a core's own cache.
constexpr uint64_t piece_weights = 8'192;
static_assert(piece_weights % 256 == 0);
// Pieces that a thread takes at once.
constexpr uint64_t pieces_at_once = 16;

base::Error not_finite(const gguf::TensorInfo& tensor, uint64_t row, std::string_view what) {
    return {base::ErrorCode::bad_file,
            cat("tensor '", base::printable(tensor.name), "' at ", gguf::place(tensor), ": row ", row, " ", what, ", allowed are finite numbers"), ""};
}

// One piece lies in one row; a row's last piece may be short.
class Pieces {
  public:
    explicit Pieces(const TensorJob& job)
        : job_(job), row_(job.in.dims[0]), rows_of_matrix_(job.in.dims[1]), in_row_((row_ + piece_weights - 1) / piece_weights) {}

    uint64_t count() const { return job_.in.n_elements() / row_ * in_row_; }
    uint64_t row_of(uint64_t piece) const { return piece / in_row_; }
    // Weights before this piece.
    uint64_t begin(uint64_t piece) const { return row_of(piece) * row_ + std::min(piece % in_row_ * piece_weights, row_); }

    // Encodes [piece, piece + 1) to `out`; false when something is not finite, and `what` says what.
    bool encode(uint64_t piece, std::byte* out, float* values, const char*& what) const {
        const uint64_t first = begin(piece), n = begin(piece + 1) - first;
        quant::dequantize_row(job_.in.type, job_.in.data.data() + quant::row_bytes(job_.in.type, first), values, n);
        float zero = 0;  // a NaN or an infinity times 0 is a NaN, which a sum keeps
        for (uint64_t i = 0; i < n; ++i) zero += values[i] * 0.0f;
        if (zero != 0) {
            what = "holds a NaN or an infinity";
            return false;
        }
        const uint64_t matrix = row_of(piece) / rows_of_matrix_;
        const float* importance = job_.importance ? job_.importance + matrix * row_ + piece % in_row_ * piece_weights : nullptr;
        quant::quantize_row(job_.type, values, out, n, importance);
        if (!quant::all_finite(job_.type, out, n)) {
            what = "holds a number too large for the new type";
            return false;
        }
        return true;
    }

  private:
    const TensorJob& job_;
    uint64_t row_, rows_of_matrix_, in_row_;
};

base::Result<void> copy(const TensorJob& job, const gguf::Writer::Sink& sink) {
    const quant::TypeInfo& row = quant::info(job.in.type);
    const uint64_t step = limits::quantize_chunk_bytes / row.block_bytes * row.block_bytes;
    for (uint64_t at = 0; at < job.in.data.size(); at += step) {
        const auto part = job.in.data.subspan(at, std::min<uint64_t>(step, job.in.data.size() - at));
        if (!quant::all_finite(job.in.type, part.data(), part.size() / row.block_bytes * row.block_elements))
            return not_finite(job.in, at / row.block_bytes * row.block_elements / job.in.dims[0], "or one of the next holds a NaN or an infinity");
        if (!sink(part)) return {};
        job.from.release(part);
        job.progress(part.size());
    }
    return {};
}

}  // namespace

base::Result<void> quantize_tensor(const TensorJob& job, const gguf::Writer::Sink& sink) {
    if (job.type == job.in.type) return copy(job, sink);
    const Pieces pieces(job);
    const uint64_t n_pieces = pieces.count();
    // A chunk is what is encoded before it is written; in and out together stay within the limit.
    const uint64_t piece_bytes = std::max<uint64_t>(1, quant::row_bytes(job.type, std::min(job.in.dims[0], piece_weights)));
    const uint64_t chunk_pieces = std::max<uint64_t>(1, limits::quantize_chunk_bytes / std::max(piece_bytes, piece_weights * 2));
    std::vector<std::byte> out;
    for (uint64_t first = 0; first < n_pieces; first += chunk_pieces) {
        const uint64_t last = std::min(n_pieces, first + chunk_pieces);
        const uint64_t begin = pieces.begin(first), end = pieces.begin(last);
        out.resize(quant::row_bytes(job.type, end - begin));
        std::atomic<uint64_t> next{first}, wrong_piece{UINT64_MAX};
        std::atomic<const char*> wrong_what{""};
        const auto work = [&] {
            std::vector<float> values(std::min(piece_weights, job.in.dims[0]));
            for (;;) {
                const uint64_t from = next.fetch_add(pieces_at_once);
                for (uint64_t piece = from; piece < std::min(last, from + pieces_at_once); ++piece) {
                    const char* what = "";
                    if (pieces.encode(piece, out.data() + quant::row_bytes(job.type, pieces.begin(piece) - begin), values.data(), what)) continue;
                    wrong_what = what;
                    wrong_piece = piece;
                    next = last;
                    return;
                }
                if (from >= last) return;
            }
        };
        const uint64_t batches = (last - first + pieces_at_once - 1) / pieces_at_once;
        {
            std::vector<std::jthread> others;
            for (uint64_t t = 1; t < std::min<uint64_t>(job.threads, batches); ++t) others.emplace_back(work);
            work();
        }
        if (wrong_piece != UINT64_MAX) return not_finite(job.in, pieces.row_of(wrong_piece), wrong_what.load());
        if (!sink(out)) return {};
        const auto read = job.in.data.subspan(quant::row_bytes(job.in.type, begin), quant::row_bytes(job.in.type, end - begin));
        job.from.release(read);
        job.progress(read.size());
    }
    return {};
}

}  // namespace commands
