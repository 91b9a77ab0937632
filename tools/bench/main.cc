#include <iostream>
#include <string>
#include <vector>

#include "store/env/process.h"
#include "tools/bench/run_bench.h"

int main(int argc, char** argv) {
  siltfs::PrepareForStore();
  return siltfs::RunBench(std::vector<std::string>(argv, argv + argc), std::cout, std::cerr);
}
