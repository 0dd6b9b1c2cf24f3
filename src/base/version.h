// The program's version. meson.build passes HEARTH_VERSION; the commit is left out so that builds are reproducible.
#pragma once

#include <string_view>

inline constexpr std::string_view version = HEARTH_VERSION;
