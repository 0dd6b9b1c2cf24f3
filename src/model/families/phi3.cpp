// Phi-3 and Phi-4 mini: q, k and v in one tensor, gate and up in another; long contexts by two sets of rope factors.
#include "model/families/families.h"
#include "model/rope.h"

namespace model {

void read_phi3(KeyReader& reader, Config& config) {
    config.fused_qkv = config.fused_gate_up = true;
    // Converters write a window as long as the context where there is none; such a one changes nothing.
    read_windows(reader, config, 1, 0);
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
}

}  // namespace model
