# Databricks notebook source
ORDERS = "id INT, country STRING"
