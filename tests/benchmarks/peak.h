/// The f32 multiply-add rate of this machine now, as the yardstick of every speed.
#pragma once

namespace crucible::benchmarks {

/// Units     FLOP/s over all OpenMP threads, with the widest vectors this CPU has; the median of
/// short windows that take about `seconds` together.  Clocks drift on shared machines: measure it
/// beside whatever is compared with it.
double peak_flops(double seconds = 0.05);

/// Units     bytes/s of a copy between two arrays of 256 MiB, over all OpenMP threads.
double copy_bandwidth();

}  // namespace crucible::benchmarks
