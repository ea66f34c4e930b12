#include "tests/samples/maker.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/backend.h"
#include "core/storage.h"

namespace crucible::testing {
namespace {

struct Placement {
  int64_t count = 0;  // elements of the memory block
  int64_t offset = 0;
  Strides strides{};
};

Placement placement(const Shape& shape, Layout layout) {
  Placement p{.count = shape.numel(), .strides = row_major(shape)};
  if (layout == Layout::flipped) {
    int64_t step = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      p.strides[i] = step;
      step *= std::max<int64_t>(shape[i], 1);
    }
  } else if (layout == Layout::gapped) {
    p.count = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      p.strides[i] = 2 * p.count;
      p.offset += p.count;
      p.count *= 2 * shape[i] + 1;
    }
  }
  return p;
}

// Calls f(row-major index, offset from the first element).
template <class F>
void for_each_element(const Shape& shape, const Strides& strides, F&& f) {
  for (int64_t i = 0; i < shape.numel(); ++i) {
    int64_t rest = i, at = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      at += rest % shape[axis] * strides[axis];
      rest /= shape[axis];
    }
    f(i, at);
  }
}

template <class T>
T convert(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<T>) {
    return std::isnan(value) ? static_cast<T>(-1) : static_cast<T>(value);
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

Tensor Maker::place(DType dtype, const Shape& shape, const std::vector<double>& values,
                    Layout layout) {
  const Placement p = placement(shape, layout);
  Tensor base = Tensor::empty({std::max<int64_t>(p.count, 1)}, dtype, device_);
  visit_dtype(dtype, AllDTypes{}, [&]<class T>() {
    std::vector<std::byte> bytes(base.nbytes(), std::byte{0x7f});
    for_each_element(shape, p.strides, [&](int64_t i, int64_t at) {
      const T value = convert<T>(values[i]);
      std::memcpy(bytes.data() + (p.offset + at) * sizeof(T), &value, sizeof(T));
    });
    backend(device_).copy_from_host(base.raw_data(), bytes.data(), base.nbytes());
  });
  shapes_ += (shapes_.empty() ? "" : ", ") + std::string(name_of(dtype)) + to_string(shape) +
             (layout == Layout::dense     ? ""
              : layout == Layout::flipped ? " flipped"
                                          : " gapped");
  return base.as_strided(shape, p.strides, p.offset);
}

Tensor Maker::normal(const Shape& shape, Layout layout) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = rng_.normal();
  return place(dtype_, shape, v, layout);
}
Tensor Maker::normal(const Shape& shape, double mean, double deviation) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = mean + deviation * rng_.normal();
  return place(dtype_, shape, v, Layout::dense);
}
Tensor Maker::uniform(const Shape& shape, double low, double high, Layout layout) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = low + (high - low) * rng_.uniform();
  return place(dtype_, shape, v, layout);
}
Tensor Maker::values(const Shape& shape, const std::vector<double>& values, Layout layout) {
  return place(dtype_, shape, values, layout);
}
Tensor Maker::distinct(const Shape& shape, double step) {
  std::vector<double> v(shape.numel());
  std::iota(v.begin(), v.end(), 1.0);
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[rng_.below(static_cast<int64_t>(i))]);
  for (double& x : v) x = (x - static_cast<double>(v.size()) / 2) * step;
  return place(dtype_, shape, v, Layout::dense);
}
Tensor Maker::integers(const Shape& shape, int64_t low, int64_t high) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = static_cast<double>(low + rng_.below(high - low));
  return place(DType::i64, shape, v, Layout::dense);
}
Tensor Maker::labels(const std::vector<int64_t>& values) {
  return place(DType::i64, {static_cast<int64_t>(values.size())}, {values.begin(), values.end()},
               Layout::dense);
}
Tensor Maker::booleans(const Shape& shape) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = static_cast<double>(rng_.below(2));
  return place(DType::boolean, shape, v, Layout::dense);
}
Tensor Maker::uniform_as(DType dtype, const Shape& shape, double low, double high) {
  std::vector<double> v(shape.numel());
  for (double& x : v) x = low + (high - low) * rng_.uniform();
  return place(dtype, shape, v, Layout::dense);
}
Tensor Maker::values_as(DType dtype, const Shape& shape, const std::vector<double>& values,
                        Layout layout) {
  return place(dtype, shape, values, layout);
}

const Tensor& Maker::output(const std::string& name, const Shape& shape) {
  return output_as(dtype_, name, shape);
}
const Tensor& Maker::output_as(DType dtype, const std::string& name, const Shape& shape,
                               Layout layout) {
  return changes(name, place(dtype, shape, std::vector<double>(shape.numel(), NAN), layout));
}
const Tensor& Maker::changes(const std::string& name, const Tensor& x) {
  if (outputs_.capacity() == 0) outputs_.reserve(16);  // references to its elements stay valid
  outputs_.push_back({name, x});
  return outputs_.back().tensor;
}
std::string Maker::shapes() const {
  return shapes_;
}

std::vector<double> host_values(const Tensor& x) {
  std::vector<double> values(x.numel());
  if (values.empty()) return values;
  const Storage& storage = *x.storage();
  std::vector<std::byte> bytes(storage.bytes());
  backend(x.device()).copy_to_host(bytes.data(), storage.data(), storage.bytes());
  const std::byte* first = bytes.data() + (x.raw_data() - storage.data());
  visit_dtype(x.dtype(), AllDTypes{}, [&]<class T>() {
    for_each_element(x.shape(), x.strides(), [&](int64_t i, int64_t at) {
      if constexpr (std::is_same_v<T, bool>) {
        values[i] = first[at] == std::byte{0} ? 0.0 : first[at] == std::byte{1} ? 1.0 : NAN;
      } else {
        T value;
        std::memcpy(&value, first + at * sizeof(T), sizeof(T));
        if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
          values[i] = static_cast<float>(value);
        } else {
          values[i] = static_cast<double>(value);
        }
      }
    });
  });
  return values;
}

std::string camel_case(std::string_view snake_case) {
  std::string result;
  bool upper = true;
  for (const char c : snake_case) {
    if (c == '_' || c == '-' || c == ' ') {
      upper = true;
      continue;
    }
    result += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return result;
}

}  // namespace crucible::testing
