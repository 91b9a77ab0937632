#include <iostream>
#include <string>
#include <vector>

#include "tools/bench/run_bench.h"

int main(int argc, char** argv) {
  return siltfs::RunBench(std::vector<std::string>(argv, argv + argc), std::cout, std::cerr);
}
