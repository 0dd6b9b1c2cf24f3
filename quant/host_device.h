// HEARTH_HD marks a function that both the host compiler and nvcc's device pass may call.
#pragma once

#if defined(__CUDACC__)
#define HEARTH_HD __host__ __device__
#else
#define HEARTH_HD
#endif
