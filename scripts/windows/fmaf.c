// mingw-w64's own rounds more than once, and not as processors do. Rust calls it for `f32::mul_add` in code that is not
// compiled for one with such an instruction.
#include <math.h>
#include <stdint.h>
#include <string.h>

float fmaf(float a, float b, float c) {
    // Exact, as twice 24 bits fit into 53; the sum is not, and what it lacks is known exactly (Knuth's two-sum).
    double product = (double)a * b, sum = product + c;
    double other = sum - product, lacks = (product - (sum - other)) + (c - other);
    if (isfinite(sum) && lacks != 0) {
        // Cut off instead of rounded, with a last bit that says so: rounding to 24 bits then rounds once.
        uint64_t bits;
        memcpy(&bits, &sum, sizeof bits);
        bits = (bits - ((lacks < 0) != (sum < 0))) | 1;
        memcpy(&sum, &bits, sizeof bits);
    }
    return (float)sum;
}
