// Force-included when clang before 15 compiles the fuzz targets (Debian 12 has 14): it knows coroutines, but looks for
// their types in std::experimental and does not announce them to libstdc++. Other compilers never see this file.
#pragma once

#define __cpp_impl_coroutine 201902L
#include <coroutine>

namespace std::experimental {
using std::coroutine_handle;
using std::coroutine_traits;
using std::noop_coroutine;
using std::suspend_always;
using std::suspend_never;
}  // namespace std::experimental
