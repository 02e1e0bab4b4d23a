// Scale of a norm: 1 / sqrt(mean of squares + epsilon). Sixteen lanes sum the squares of every
// sixteenth number of a run of 256, with one thread each. The runs' lanes are added in order, then
// across as the CPU's vectors are.

// Numbers whose squares all threads add at once.
const AT_ONCE = 16u * THREADS;

var<workgroup> lanes: array<f32, THREADS>; // [runs, 16]

// First number of a thread's lane; the others follow at distances of 16.
fn lane_of(thread: u32) -> u32 {
    return thread / 16u * 256u + thread % 16u;
}

// Adds the runs' squares to the `total` of a lane, which the first sixteen threads have.
fn add_runs(thread: u32, squares: f32, total: f32) -> f32 {
    workgroupBarrier();
    lanes[thread] = squares;
    workgroupBarrier();
    var sum = total;
    if thread < 16u {
        for (var at = thread; at < THREADS; at += 16u) {
            sum += lanes[at];
        }
    }
    return sum;
}

// Scale of `length` numbers, from the totals of the lanes.
fn norm_scale(thread: u32, total: f32, length: u32, epsilon: f32) -> f32 {
    if thread < 16u {
        lanes[thread] = total;
    }
    workgroupBarrier();
    return divide(1.0, root(divide(across(0u), f32(length)) + epsilon));
}
