// What a binary for NVIDIA GPUs is linked with instead of CUDA's libraries, so that it starts without them.
//
// Each of their functions is here a jump through a pointer, which leads to one that reports failure until the
// library is opened: the driver, if there is one, when the program starts; the others, which are large, once
// the driver has found a GPU.
//
// functions.h, which scripts/cuda.sh writes, has a line F(library, kind, name) for each function; kind is text
// for those that return a string, else status. VERSION is CUDA's as a string, such as "13".
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// What a function returns while it is missing: of its library's errors the one that fits best.
static int driver_status(void) { return 34; }  // CUDA_ERROR_STUB_LIBRARY
static int cublas_status(void) { return 1; }   // CUBLAS_STATUS_NOT_INITIALIZED
static int cublaslt_status(void) { return 1; } // the same
static int curand_status(void) { return 101; } // CURAND_STATUS_NOT_INITIALIZED
static int nvrtc_status(void) { return 11; }   // NVRTC_ERROR_INTERNAL_ERROR
static const char *missing_text(void) { return "this function's library is missing"; }
#define cublas_text missing_text
#define cublaslt_text missing_text
#define nvrtc_text missing_text

// A jump leaves all arguments where they are, in registers and on the stack.
#if defined(__x86_64__)
#define JUMP(name) "jmp *pointer_" #name "(%rip)\n"
#elif defined(__aarch64__)
#define JUMP(name) "adrp x16, pointer_" #name "\nldr x16, [x16, :lo12:pointer_" #name "]\nbr x16\n"
#else
#error "expected x86-64 or aarch64, which NVIDIA has drivers for"
#endif
// Hidden, so that a library that is opened finds the functions of the others instead of these.
#define F(library, kind, name)                                                                      \
    __attribute__((visibility("hidden"))) void *pointer_##name = (void *)library##_##kind;          \
    __asm__(".text\n.globl " #name "\n.hidden " #name "\n.type " #name ", %function\n" #name ":\n"  \
            JUMP(name) ".size " #name ", . - " #name "\n");
#include "functions.h"
#undef F

enum library { driver, cublas, cublaslt, curand, nvrtc };

static const struct {
    enum library library;
    const char *name;
    void **pointer;
} functions[] = {
#define F(library, kind, name) { library, #name, &pointer_##name },
#include "functions.h"
#undef F
};

// Opens a library by the first of two names that is there, if one is.
static void load(enum library library, const char *name, const char *other_name) {
    void *handle = dlopen(name, RTLD_LAZY);
    if (!handle) handle = dlopen(other_name, RTLD_LAZY);
    if (!handle) return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (functions[i].library != library) continue;
        void *found = dlsym(handle, functions[i].name);
        if (found) *functions[i].pointer = found;
    }
}

static void load_libraries(void) {
    load(cublaslt, "libcublasLt.so." VERSION, "libcublasLt.so"); // cuBLAS needs it: the one next to the program
    load(cublas, "libcublas.so." VERSION, "libcublas.so");
    load(curand, "libcurand.so.10", "libcurand.so");
    load(nvrtc, "libnvrtc.so." VERSION, "libnvrtc.so");
}

// Takes the place of the driver's cuInit, which is called before anything else.
static int (*driver_init)(unsigned flags);
static int init(unsigned flags) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = driver_init(flags);
    if (status == 0) pthread_once(&once, load_libraries);
    return status;
}

__attribute__((constructor)) static void load_driver(void) {
    load(driver, "libcuda.so.1", "libcuda.so");
    driver_init = (int (*)(unsigned))pointer_cuInit;
    pointer_cuInit = (void *)init;
}
