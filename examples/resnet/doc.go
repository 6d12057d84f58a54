// Resnet trains a residual network on Fashion-MNIST.
package main
