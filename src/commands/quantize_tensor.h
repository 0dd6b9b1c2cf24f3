// One tensor from one format to another, in pieces: memory does not depend on its size.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "gguf/file.h"
#include "gguf/model_files.h"
#include "gguf/writer.h"
#include "quant/types.h"

namespace commands {

struct TensorJob {
    const gguf::ModelFiles& from;            // that `in` lies in; pages that were read are released
    const gguf::TensorInfo& in;
    quant::Type type;                        // to
    const float* importance = nullptr;       // dims[0] values for each of dims[2] * dims[3] matrices; null: none
    uint32_t threads = 1;
    std::function<void(uint64_t)> progress;  // bytes of `in` that were read since the last call
};

// Everything to `sink`, in order; false from it stops (and is the caller's to report). An error names the tensor and the
// row: a value that is not finite, or a block that would decode to one. The bytes don't depend on the number of threads.
base::Result<void> quantize_tensor(const TensorJob& job, const gguf::Writer::Sink& sink);

}  // namespace commands
