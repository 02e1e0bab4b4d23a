// Wine before version 9 lacks this library, from which Rust's programs take their random numbers.
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T bytes) {
    return RtlGenRandom(data, (ULONG)bytes);
}
