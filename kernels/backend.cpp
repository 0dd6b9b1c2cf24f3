#include "kernels/backend.h"

namespace kernels {

void Backend::matmul_many(Tensor x, std::span<const Product> products) {
    for (const Product& product : products) matmul(product.w, x, product.out, false);
}

void Backend::gated(Activation f, const Matrix& gate, const Matrix& up, Tensor x, Tensor spare, Tensor out) {
    matmul(gate, x, spare, false);
    matmul(up, x, out, false);
    activate_mul(f, spare, out, out);
}

}  // namespace kernels
