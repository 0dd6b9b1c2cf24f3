// OLMo 2 (arXiv 2501.00656): norms behind each half of a layer and none before, norms of whole rows of q and k. OLMo 3 adds
// windows on three layers of four, where its rope is not scaled.
#include "model/families/families.h"
#include "model/rope.h"

namespace model {

void read_olmo2(KeyReader& reader, Config& config) {
    config.pre_norms = false;
    config.post_norms = true;
    config.qk_norm = QkNorm::row;
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
    read_windows_with_rope(reader, config, 4, reader.real("rope.freq_base", smallest_rope_base, 1e12, 10000.0));
}

}  // namespace model
