/// The abstract root of models, as tools hold them.
#pragma once

#include "core/parameters.h"

namespace crucible::models {

struct ModelOptions {
  Device device = Device::cpu();
  uint64_t seed = 0;
  DType dtype = DType::f32;
};

class Module {
 public:
  explicit Module(const ModelOptions& options)
      : parameters_(options.device, options.seed, options.dtype) {}
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  Tensor operator()(const Tensor& x) { return forward(x); }

  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }

 protected:
  Scope root() { return Scope(parameters_); }

 private:
  ParameterSet parameters_;
};

}  // namespace crucible::models
