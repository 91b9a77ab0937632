#!/usr/bin/env bash
# check_kernel_symbols.sh OBJECTS
#
# Code compiled for one instruction set must not be linked into code for another. OBJECTS is a list
# separated by semicolons. Each object that is a kernel for an instruction set may export only its
# own functions. In particular it must not export shared inline functions or templates, because the
# linker keeps an arbitrary copy of them.
set -u
failures=0
checked=0
IFS=';' read -ra objects <<<"$1"
for object in "${objects[@]}"; do
  [[ $object =~ /(scan_avx|compress_avx|compress_sha)[a-z0-9_]*\.cc\.o$ ]] || continue
  checked=$((checked + 1))
  # Global symbols of type T are the kernel's own functions. Weak symbols (W, V, u) are forbidden,
  # because the linker may choose the kernel's copy for all callers, and this copy may need a newer
  # processor. There are two exceptions: symbols of sanitizers (their names start with "__"), and
  # DW.ref.*, a data pointer for unwinding, which does not depend on the instruction set.
  strangers=$(nm --defined-only --extern-only "$object" |
    awk '$2 != "T" && $3 !~ /^__(a|ub|t)san/ && $3 != "DW.ref.__gxx_personality_v0" {print $2, $3}')
  functions=$(nm --demangle --defined-only --extern-only "$object" | awk '$2 == "T"' | grep -c -E 'siltfs::(Scan|Sha1Compress)[A-Za-z0-9]+\(')
  others=$(nm --demangle --defined-only --extern-only "$object" | awk '$2 == "T"' | grep -v -c -E 'siltfs::(Scan|Sha1Compress)[A-Za-z0-9]+\(')
  if [[ -n $strangers ]] || ((functions == 0 || others > 0)); then
    printf '%s exports more than its kernel:\n%s\n' "$object" "$(nm --demangle --defined-only --extern-only "$object")" >&2
    failures=$((failures + 1))
  fi
done
if ((checked == 0)); then
  printf 'there is no kernel among %s\n' "$1" >&2
  failures=1
fi
((failures == 0))
