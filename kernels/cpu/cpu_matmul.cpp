// Products: the input is prepared once (quantized, or packed), then row panels are handed out in chunks. A chunk walks a few
// panels over all column tiles while they are hot in L1; k is never split, so no chunking changes bits.
#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace kernels::cpu {

CpuBackend::Tiles CpuBackend::tiles_of(uint32_t columns) const {
    Tiles tiles;
    tiles.columns = columns;
    const uint32_t most = table_.tile_columns_many;
    tiles.count = columns <= table_.tile_columns ? 1 : (columns + most - 1) / most;
    tiles.width = columns / tiles.count;
    tiles.wider = columns % tiles.count;
    return tiles;
}

void CpuBackend::add_needs(const Matrix& w, Needs& needs) const {
    const FormInfo& form = info(matrices_[w.index].form);
    needs.codes |= form.integer();
    needs.halves |= form.sub_block == 16;
    needs.values |= !form.integer();
}

void CpuBackend::check_input(const Matrix& w, const Tensor& x, const Tensor& out) const {
    CHECK_LT(w.index, matrices_.size());
    CHECK_EQ(x.cols, w.cols);
    CHECK_EQ(out.cols, w.rows);
    CHECK_EQ(x.rows, out.rows);
    CHECK_LE(x.rows, step_.rows_max);
    CHECK_LE(x.cols, step_.cols_max);
}

void CpuBackend::prepare(Tensor x, const Tiles& tiles, Needs needs) {
    const uint32_t n_blocks = x.cols / block_k;
    const uint32_t tile_ns = x.cols * tiles.width / 8 + 1;
    for_rows(tiles.count, tile_ns, [&](uint32_t i) {
        const uint32_t start = tiles.start(i), w = tiles.columns_of(i);
        const float* first = x.data + size_t{start} * x.cols;
        if (needs.codes) {
            const size_t at = size_t{start} * n_blocks;
            QuantizeArgs a;
            a.x = first;
            a.stride = x.cols;
            a.columns = w;
            a.n_blocks = n_blocks;
            a.levels = levels_;
            a.out.codes = codes_.codes + size_t{start} * x.cols * levels_;
            a.out.scale = codes_.scale + at;
            a.out.scaled_sum = codes_.scaled_sum + at;
            a.out.minus_8_sum = codes_.minus_8_sum + at;
            if (needs.halves) {
                a.out.scaled_sum_halves = codes_.scaled_sum_halves + 2 * at;
                a.out.minus_8_sum_halves = codes_.minus_8_sum_halves + 2 * at;
            }
            table_.quantize(a);
        }
        if (needs.values) {
            float* values = values_ + size_t{start} * x.cols;
            for (uint32_t c = 0; c < w; ++c)
                for (uint32_t k = 0; k < x.cols; ++k) values[size_t{k} * w + c] = first[size_t{c} * x.cols + k];
        }
    });
}

// Fills `tile` in place: a struct returned and copied in 16-byte pieces right after it was written in 8-byte ones cannot be forwarded
// from the store buffer, and then waits for every earlier store (measured: 8 % of a prefill).
void CpuBackend::point_at(ActivationTile& tile, const PanelMatrix& w, const Tiles& tiles, uint32_t i) const {
    const FormInfo& form = info(w.form);
    const uint32_t start = tiles.start(i);
    tile.columns = tiles.columns_of(i);
    if (!form.integer()) {
        tile.values = values_ + size_t{start} * w.cols;
        return;
    }
    const size_t at = size_t{start} * w.n_blocks;
    tile.levels = levels_;
    tile.codes = codes_.codes + size_t{start} * w.cols * levels_;
    tile.scale = codes_.scale + at;
    tile.scaled_sum = form.sub_block == 16 ? codes_.scaled_sum_halves + 2 * at : codes_.scaled_sum + at;
    tile.minus_8_sum = form.sub_block == 16 ? codes_.minus_8_sum_halves + 2 * at : codes_.minus_8_sum + at;
}

// Panels [first_panel, first_panel + n_panels) times one tile; out is (column 0, row 0 of the first panel).
void CpuBackend::multiply(const PanelMatrix& w, uint32_t first_panel, uint32_t n_panels, const Tiles& tiles, uint32_t tile, float* out,
                          size_t out_stride, bool add) const {
    MatmulArgs a;
    a.panels = w.data + size_t{first_panel} * w.panel_bytes;
    a.panel_bytes = w.panel_bytes;
    a.meta_offset = w.meta_offset;
    a.n_panels = n_panels;
    a.n_blocks = w.n_blocks;
    a.cols = w.cols;
    a.out = out;
    a.out_stride = out_stride;
    a.rows = std::min(n_panels * panel_rows, w.rows - first_panel * panel_rows);
    point_at(a.x, w, tiles, tile);
    a.add = add;
    a.prefetch = tile == 0;  // the other tiles find the panels in L1
    table_.matmul[static_cast<size_t>(w.form)](a);
}

uint32_t CpuBackend::group_of(const Tiles& tiles) const { return tiles.count == 1 ? group_panels_max : table_.group_panels; }

void CpuBackend::multiply_panels(const PanelMatrix& w, uint32_t first_panel, uint32_t last_panel, const Tiles& tiles, Tensor out, bool add) const {
    const uint32_t group = group_of(tiles);
    for (uint32_t p = first_panel; p < last_panel; p += group) {
        const uint32_t n = std::min(group, last_panel - p);
        for (uint32_t i = 0; i < tiles.count; ++i)
            multiply(w, p, n, tiles, i, out.data + size_t{tiles.start(i)} * out.cols + size_t{p} * panel_rows, out.cols, add);
    }
}

// How many chunks to cut `units` into; work = multiply-adds in all, weighted.
uint32_t CpuBackend::chunks_for(uint64_t units, uint64_t work) const {
    // A chunk is worth handing out from some microseconds on: 64 Ki weights of a decode step are 2-3 us.
    constexpr uint64_t chunk_work_min = 65536;
    const uint32_t threads = pool_.threads();
    uint64_t chunks = std::min<uint64_t>({units, work / chunk_work_min, uint64_t{threads} * 4});
    if (chunks > threads) chunks -= chunks % threads;
    return static_cast<uint32_t>(std::max<uint64_t>(chunks, 1));
}

void CpuBackend::matmul(const Matrix& w, Tensor x, Tensor out, bool add) {
    check_input(w, x, out);
    if (x.rows == 0) return;
    const Tiles tiles = tiles_of(x.rows);
    Needs needs;
    add_needs(w, needs);
    prepare(x, tiles, needs);
    const PanelMatrix& panels = matrices_[w.index];
    // Whole groups of panels to a chunk when there are several tiles, single panels when there is one.
    const uint32_t unit = tiles.count == 1 ? 1 : table_.group_panels;
    const uint64_t units = (panels.n_panels + unit - 1) / unit;
    const uint32_t chunks = chunks_for(units, uint64_t{w.rows} * w.cols * std::max(1u, x.rows / 4));
    pool_.run(chunks, [&](uint32_t chunk, uint32_t) {
        const uint32_t first = static_cast<uint32_t>(units * chunk / chunks) * unit;
        const uint32_t last = std::min(static_cast<uint32_t>(units * (chunk + 1) / chunks) * unit, panels.n_panels);
        multiply_panels(panels, first, last, tiles, out, add);
    });
}

void CpuBackend::matmul_many(Tensor x, std::span<const Product> products) {
    if (x.rows == 0) return;
    const Tiles tiles = tiles_of(x.rows);
    const uint32_t unit = tiles.count == 1 ? 1 : table_.group_panels;
    Needs needs;
    uint64_t units = 0, work = 0;
    for (const Product& product : products) {
        check_input(product.w, x, product.out);
        add_needs(product.w, needs);
        units += (matrices_[product.w.index].n_panels + unit - 1) / unit;
        work += uint64_t{product.w.rows} * product.w.cols;
    }
    prepare(x, tiles, needs);
    const uint32_t chunks = chunks_for(units, work * std::max(1u, x.rows / 4));
    pool_.run(chunks, [&](uint32_t chunk, uint32_t) {
        // Units are counted through all products; this chunk is [first, last).
        const uint64_t first = units * chunk / chunks, last = units * (chunk + 1) / chunks;
        uint64_t base = 0;
        for (const Product& product : products) {
            const PanelMatrix& panels = matrices_[product.w.index];
            const uint64_t mine = (panels.n_panels + unit - 1) / unit;
            const uint64_t from = std::max(first, base), to = std::min(last, base + mine);
            if (from < to)
                multiply_panels(panels, static_cast<uint32_t>(from - base) * unit, std::min(static_cast<uint32_t>(to - base) * unit, panels.n_panels), tiles, product.out, false);
            base += mine;
        }
    });
}

void CpuBackend::gated(Activation f, const Matrix& gate, const Matrix& up, Tensor x, Tensor spare, Tensor out) {
    check_input(gate, x, out);
    check_input(up, x, out);
    (void)spare;
    if (x.rows == 0) return;
    const Tiles tiles = tiles_of(x.rows);
    Needs needs;
    add_needs(gate, needs);
    add_needs(up, needs);
    prepare(x, tiles, needs);
    const PanelMatrix &g = matrices_[gate.index], &u = matrices_[up.index];
    const uint32_t unit = tiles.count == 1 ? 1 : table_.group_panels, group = group_of(tiles);
    const uint64_t units = (g.n_panels + unit - 1) / unit;
    const uint32_t chunks = chunks_for(units, 2 * uint64_t{gate.rows} * gate.cols * std::max(1u, x.rows / 4));
    const size_t scratch_floats = thread_scratch_floats(step_);
    const auto activate = table_.activate_mul[static_cast<size_t>(f)];
    pool_.run(chunks, [&](uint32_t chunk, uint32_t thread) {
        const uint32_t first = static_cast<uint32_t>(units * chunk / chunks) * unit;
        const uint32_t last = std::min(static_cast<uint32_t>(units * (chunk + 1) / chunks) * unit, g.n_panels);
        float* gate_tile = thread_scratch_ + thread * scratch_floats;  // (columns, group * 16)
        float* up_tile = gate_tile + size_t{max_tile_columns} * group_panels_max * panel_rows;
        for (uint32_t p = first; p < last; p += group) {
            const uint32_t n = std::min(group, last - p), rows = std::min(n * panel_rows, g.rows - p * panel_rows);
            const size_t stride = size_t{n} * panel_rows;
            for (uint32_t i = 0; i < tiles.count; ++i) {
                multiply(g, p, n, tiles, i, gate_tile, stride, false);
                multiply(u, p, n, tiles, i, up_tile, stride, false);
                for (uint32_t c = 0; c < tiles.columns_of(i); ++c)
                    activate(gate_tile + c * stride, up_tile + c * stride,
                                    out.data + size_t{tiles.start(i) + c} * out.cols + size_t{p} * panel_rows, rows);
            }
        }
    });
}

}  // namespace kernels::cpu
